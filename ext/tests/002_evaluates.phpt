--TEST--
A snippet is evaluated in a child, confined, and its ending is a result
--EXTENSIONS--
altair_eval
--FILE--
<?php
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

$root = __DIR__ . '/002_application';
mkdir("$root/vendor", 0777, true);
file_put_contents("$root/vendor/autoload.php", "<?php\nfunction greeting() { return 'hello'; }\n");

$evaluator = new Evaluator();
$result = $evaluator->evaluate(new EvalRequest('echo "out"; return [greeting(), getmypid()];', $root));
var_dump($result->ok(), $result->stdout);
var_dump($result->result['value'][0]['value'], $result->result['value'][1]['value'] !== getmypid());

$result = $evaluator->evaluate(new EvalRequest('throw new DomainException("boom");', $root));
var_dump($result->ok(), $result->exception['class'], $result->exception['message']);

$evaluator->evaluate(new EvalRequest('file_put_contents("written", "x");', $root));
var_dump(file_exists("$root/written"));
?>
--CLEAN--
<?php
$root = __DIR__ . '/002_application';
@unlink("$root/vendor/autoload.php");
@rmdir("$root/vendor");
@rmdir($root);
?>
--EXPECT--
bool(true)
string(3) "out"
string(5) "hello"
bool(true)
bool(false)
string(15) "DomainException"
string(4) "boom"
bool(false)
