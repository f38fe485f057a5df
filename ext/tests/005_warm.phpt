--TEST--
The application is booted once, and anew when it has changed
--EXTENSIONS--
altair_eval
--INI--
altair_eval.warm=1
--FILE--
<?php
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

$root = __DIR__ . '/005_application';
mkdir("$root/vendor", 0777, true);
$boot = static fn (string $says) => file_put_contents(
    "$root/vendor/autoload.php",
    "<?php function says() { return '$says'; }",
);

$boot('before');
$evaluator = new Evaluator();
$request = new EvalRequest('return says();', $root);
var_dump($evaluator->evaluate($request)->result['value']);
// How it was started is this system's affair: where no template is to be had, it is cold.
$warm = $evaluator->evaluate($request);
var_dump($warm->result['value'], isset($warm->diagnostics['start']));
$boot('after');
var_dump($evaluator->evaluate($request)->result['value']);
?>
--CLEAN--
<?php
$root = __DIR__ . '/005_application';
@unlink("$root/vendor/autoload.php");
@rmdir("$root/vendor");
@rmdir($root);
?>
--EXPECT--
string(6) "before"
string(6) "before"
bool(true)
string(5) "after"
