--TEST--
The extension is loaded and has its classes
--EXTENSIONS--
altair_eval
--FILE--
<?php
var_dump(extension_loaded('altair_eval'));
var_dump((new ReflectionClass(Altair\Eval\Evaluator::class))->isInternal());
var_dump(Altair\Eval\EvalRequest::DEFAULT_TIMEOUT_MS);
?>
--EXPECT--
bool(true)
bool(true)
int(5000)
