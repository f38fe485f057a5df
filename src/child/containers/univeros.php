// The Univeros framework's own container, if it autoloads.
return \class_exists(\Altair\Container\Container::class) ? new \Altair\Container\Container() : null;
