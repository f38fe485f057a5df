<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Compact;

use BackedEnum;
use Closure;
use DateTimeImmutable;
use DateTimeInterface;
use ReflectionFunction;
use ReflectionObject;
use Traversable;
use UnitEnum;

/**
 * What a decoder has to give for a value, from PHP's own view of it.
 */
final class Original
{
    /** @var list<object> */
    private array $enclosing = [];

    /**
     * @param bool $isWhole whether the encoder shows every visibility, properties without a value and time zones
     */
    public function __construct(private readonly bool $isWhole)
    {
    }

    public function shown(mixed $value): mixed
    {
        return match (true) {
            $value instanceof Shown => $value,
            is_array($value) => array_map($this->shown(...), $value),
            is_resource($value) => new Shown('resource', ['shown' => get_resource_type($value)]),
            $value instanceof UnitEnum => new Shown(
                'enum',
                ['shown' => $value::class . "::$value->name"]
                    + ($value instanceof BackedEnum ? ['value' => $value->value] : []),
            ),
            $value instanceof Closure => new Shown('closure', ['shown' => self::place(new ReflectionFunction($value))]),
            $value instanceof DateTimeInterface => new Shown('date', $this->date($value)),
            is_object($value) => $this->object($value),
            default => $value,
        };
    }

    private static function place(ReflectionFunction $closure): string
    {
        return "{$closure->getFileName()}:{$closure->getStartLine()}";
    }

    /**
     * @return array<string, string>
     */
    private function date(DateTimeInterface $date): array
    {
        $zone = $date->getTimezone()->getName();
        $offset = $date->format('P');
        $fraction = $date->format('u') === '000000' ? '' : '.u';
        $facts = ['shown' => $date->format("Y-m-d\TH:i:s$fraction") . ($offset === '+00:00' ? 'Z' : $offset)];
        if ($date::class !== DateTimeImmutable::class) {
            $facts['class'] = $date::class;
        }

        return $this->isWhole && $zone !== $offset ? $facts + ['zone' => $zone] : $facts;
    }

    private function object(object $object): Shown
    {
        foreach (array_reverse($this->enclosing) as $up => $enclosing) {
            if ($enclosing === $object) {
                return new Shown('reference', ['up' => $up]);
            }
        }
        if ($object instanceof Traversable) {
            $entries = [];
            foreach ($object as $key => $item) {
                $entries[] = [$this->shown($key), $this->shown($item)];
            }

            return new Shown('iterable', ['class' => $object::class], $entries);
        }
        $this->enclosing[] = $object;
        $entries = ['' => [], '#' => [], '-' => []];
        foreach ($this->properties($object) as [$mark, $name, $value]) {
            $entries[$mark][] = [[$mark, $name], $this->shown($value)];
        }
        array_pop($this->enclosing);

        return new Shown('object', ['class' => $object::class], array_merge(...array_values($entries)));
    }

    /**
     * @return iterable<array{string, string, mixed}>
     */
    private function properties(object $object): iterable
    {
        foreach ((array) $object as $key => $value) {
            $key = (string) $key;
            [$mark, $name] = match (true) {
                str_starts_with($key, "\0*\0") => ['#', substr($key, 3)],
                str_starts_with($key, "\0") => ['-', $this->privateName($object, explode("\0", $key))],
                default => ['', $key],
            };
            if ($mark === '' || $this->isWhole) {
                yield [$mark, $name, $value];
            }
        }
        foreach ($this->isWhole ? (new ReflectionObject($object))->getProperties() : [] as $property) {
            if (!$property->isInitialized($object)) {
                $mark = $property->isPublic() ? '' : ($property->isProtected() ? '#' : '-');
                yield [$mark, $property->getName(), new Shown('uninitialized')];
            }
        }
    }

    /**
     * @param list<string> $key of an array cast: nothing, the class, the name
     */
    private function privateName(object $object, array $key): string
    {
        [, $class, $name] = $key;
        $isHidden = $class !== $object::class && property_exists($object, $name);

        return $isHidden ? "$class::$name" : $name;
    }
}
