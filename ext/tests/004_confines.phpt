--TEST--
A snippet connects to nothing, executes nothing, and does not outlast its deadline
--EXTENSIONS--
altair_eval
--FILE--
<?php
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

$root = __DIR__ . '/004_application';
mkdir("$root/vendor", 0777, true);
touch("$root/vendor/autoload.php");
$evaluator = new Evaluator();
$run = static fn (string $snippet, mixed ...$options) =>
    $evaluator->evaluate(new EvalRequest($snippet, $root, ...$options));

$listener = stream_socket_server('tcp://127.0.0.1:0');
$address = stream_socket_get_name($listener, false);
$result = $run("fsockopen('tcp://$address');");
var_dump($result->ok(), @stream_socket_accept($listener, 0));
var_dump($result->diagnostics['blocked'][0]['lift'] === "--service=$address");

$result = $run("return @shell_exec('touch $root/executed');");
var_dump($result->diagnostics['blocked'][0]['what'], file_exists("$root/executed"));

$result = $run('while (true);', timeoutMs: 300);
var_dump($result->timedOut, $result->diagnostics['outcome'], $result->diagnostics['location']['file']);
?>
--CLEAN--
<?php
$root = __DIR__ . '/004_application';
@unlink("$root/vendor/autoload.php");
@rmdir("$root/vendor");
@rmdir($root);
?>
--EXPECT--
bool(false)
bool(false)
bool(true)
string(12) "shell_exec()"
bool(false)
bool(true)
string(9) "timed_out"
string(7) "snippet"
