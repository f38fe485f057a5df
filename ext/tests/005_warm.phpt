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
    "<?php define('BOOT', random_int(0, PHP_INT_MAX)); function says() { return '$says'; }",
);

$boot('before');
$evaluator = new Evaluator();
$run = static fn () => $evaluator->evaluate(new EvalRequest('return [says(), BOOT];', $root));
$boots = [];
// What is changed just before it is read makes one template more.
for ($n = 0; $n < 5; $n++) {
    $result = $run();
    $boots[] = $result->result['value'][1]['value'];
}
var_dump($result->result['value'][0]['value']);
// How it was started is this system's affair: where no template is to be had, it is cold.
var_dump($result->diagnostics['start'] === 'cold' || $boots[3] === $boots[4]);
$boot('after');
var_dump($run()->result['value'][0]['value']);
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
bool(true)
string(5) "after"
