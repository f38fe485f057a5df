--TEST--
What can never run is an exception that says why
--EXTENSIONS--
altair_eval
--FILE--
<?php
try {
    (new Altair\Eval\Evaluator())->evaluate(new Altair\Eval\EvalRequest('return 1;', '/no/such/project'));
} catch (Altair\Eval\Exception\InvalidRequestException $exception) {
    echo $exception->getMessage(), "\n";
}
?>
--EXPECT--
The project root /no/such/project cannot be used: no such file or directory.
