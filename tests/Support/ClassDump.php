<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use BackedEnum;
use ReflectionClass;
use ReflectionClassConstant;
use ReflectionEnum;
use ReflectionMethod;
use ReflectionParameter;
use ReflectionProperty;

/**
 * All that reflection tells of classes, as plain data that two processes can compare.
 *
 * Needs no autoloader and no extension: a bare PHP requires this one file.
 */
final class ClassDump
{
    /**
     * @param iterable<class-string> $names
     * @return array<class-string, array<string, mixed>>
     */
    public static function of(iterable $names): array
    {
        $dump = [];
        foreach ($names as $name) {
            $dump[$name] = self::type(new ReflectionClass($name));
        }
        ksort($dump);

        return $dump;
    }

    /**
     * @param iterable<class-string> $names
     * @return list<string> the classes and members without a doc comment; constructors and what PHP
     *     gives every enum may do without one
     */
    public static function undocumented(iterable $names): array
    {
        $undocumented = [];
        foreach ($names as $name) {
            $class = new ReflectionClass($name);
            $members = $class->getReflectionConstants();
            if (!$class->isEnum()) {
                $members = [...$members, ...$class->getProperties(), ...$class->getMethods()];
            }
            foreach ([$class, ...$members] as $member) {
                $own = $member === $class || $member->getDeclaringClass()->name === $name;
                if ($own && $member->name !== '__construct' && $member->getDocComment() === false) {
                    $undocumented[] = $member === $class ? $name : "$name::{$member->name}";
                }
            }
        }

        return $undocumented;
    }

    /**
     * @param ReflectionClass<object> $class
     * @return array<string, mixed>
     */
    private static function type(ReflectionClass $class): array
    {
        $own = static fn (ReflectionMethod|ReflectionProperty|ReflectionClassConstant $member): bool =>
            $member->getDeclaringClass()->name === $class->name;
        $interfaces = $class->getInterfaceNames();
        sort($interfaces);

        return [
            'interface' => $class->isInterface(),
            'enum' => $class->isEnum() ? (string) (new ReflectionEnum($class->name))->getBackingType() : null,
            'final' => $class->isFinal(),
            'abstract' => $class->isAbstract(),
            'readonly' => method_exists($class, 'isReadOnly') && $class->isReadOnly(),
            'cloneable' => $class->isCloneable(),
            'iterable' => $class->isIterable(),
            'parent' => ($class->getParentClass() ?: null)?->name,
            'interfaces' => $interfaces,
            'constants' => array_map(
                self::constant(...),
                array_values(array_filter($class->getReflectionConstants(), $own)),
            ),
            // In the order of declaration: var_dump and foreach show it.
            'properties' => array_map(self::property(...), array_values(array_filter($class->getProperties(), $own))),
            'methods' => self::byName(array_map(
                self::method(...),
                array_filter($class->getMethods(), static fn (ReflectionMethod $method): bool =>
                    $own($method) && !self::forbidsClones($method)),
            )),
        ];
    }

    /**
     * @return array<string, mixed>
     */
    private static function constant(ReflectionClassConstant $constant): array
    {
        return [
            'name' => $constant->name,
            'case' => $constant->isEnumCase(),
            'value' => $constant->getValue() instanceof BackedEnum
                ? $constant->getValue()->value
                : $constant->getValue(),
            'visibility' => self::visibility($constant),
            'final' => $constant->isFinal(),
        ];
    }

    /**
     * @return array<string, mixed>
     */
    private static function property(ReflectionProperty $property): array
    {
        return [
            'name' => $property->name,
            'type' => self::typeName($property),
            'visibility' => self::visibility($property),
            'readonly' => $property->isReadOnly(),
            'static' => $property->isStatic(),
            'promoted' => $property->isPromoted(),
            'default' => $property->hasDefaultValue() ? var_export($property->getDefaultValue(), true) : null,
        ];
    }

    /**
     * @return array<string, mixed>
     */
    private static function method(ReflectionMethod $method): array
    {
        return [
            'name' => $method->name,
            'visibility' => self::visibility($method),
            'static' => $method->isStatic(),
            'final' => $method->isFinal(),
            'abstract' => $method->isAbstract(),
            'constructor' => $method->isConstructor(),
            'variadic' => $method->isVariadic(),
            'by reference' => $method->returnsReference(),
            'required' => $method->getNumberOfRequiredParameters(),
            'parameters' => array_map(self::parameter(...), $method->getParameters()),
            'returns' => (string) ($method->getReturnType() ?? $method->getTentativeReturnType()),
        ];
    }

    /**
     * @return array<string, mixed>
     */
    private static function parameter(ReflectionParameter $parameter): array
    {
        return [
            'name' => $parameter->name,
            'type' => self::typeName($parameter),
            'null' => $parameter->allowsNull(),
            'optional' => $parameter->isOptional(),
            'variadic' => $parameter->isVariadic(),
            'by reference' => $parameter->isPassedByReference(),
            'default' => $parameter->isDefaultValueAvailable()
                ? var_export($parameter->getDefaultValue(), true)
                : null,
        ];
    }

    private static function typeName(ReflectionProperty|ReflectionParameter $of): string
    {
        return (string) $of->getType();
    }

    private static function visibility(ReflectionMethod|ReflectionProperty|ReflectionClassConstant $of): string
    {
        return $of->isPublic() ? 'public' : ($of->isProtected() ? 'protected' : 'private');
    }

    /** A native class has no method for that, and a stub can say it only by one; `cloneable` compares the two. */
    private static function forbidsClones(ReflectionMethod $method): bool
    {
        return $method->name === '__clone' && $method->isPrivate();
    }

    /**
     * @param array<array<string, mixed>> $members
     * @return array<string, array<string, mixed>>
     */
    private static function byName(array $members): array
    {
        $members = array_column($members, null, 'name');
        ksort($members);

        return $members;
    }
}
