//! Native classes that behave like classes written in PHP.
//!
//! They are plain objects of the engine with declared, typed, readonly properties; only methods
//! are native. So `clone`, `var_dump`, reflection and write errors are PHP's own.

use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, Ordering};

use ext_php_rs::args::Arg;
use ext_php_rs::builders::{ClassBuilder, FunctionBuilder};
use ext_php_rs::class::ClassEntryInfo;
use ext_php_rs::flags::{ClassFlags, ConstantFlags, DataType, MethodFlags};
use ext_php_rs::types::Zval;
use ext_php_rs::zend::{ClassEntry, ExecuteData};

use super::{ffi, object};

/// The native side of a method.
pub type Handler = extern "C" fn(&mut ExecuteData, &mut Zval);

/// Holds a registered class entry.
pub struct Slot(AtomicPtr<ClassEntry>);

impl Slot {
    /// An empty slot.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    fn set(&self, ce: &'static mut ClassEntry) {
        self.0.store(ce, Ordering::Release);
    }

    /// The class.
    ///
    /// # Panics
    ///
    /// If it is not registered yet. The module's start registers all classes.
    #[must_use]
    pub fn get(&self) -> &'static ClassEntry {
        // SAFETY: null or the engine's entry of a class of this module, which lives as long as the
        // module.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
            .unwrap_or_else(|| panic!("class used before the module's start"))
    }
}

/// The type of a property or parameter.
#[derive(Clone, Copy)]
pub struct Type {
    mask: u32,
    data: DataType,
    nullable: bool,
}

/// `MAY_BE_NULL` of `Zend/zend_type_info.h`; a mask is one bit per type number.
const NULL: u32 = 1 << 1;

impl Type {
    /// `string`.
    pub const STRING: Self = Self::of(1 << 6, DataType::String);
    /// `int`.
    pub const INT: Self = Self::of(1 << 4, DataType::Long);
    /// `float`.
    pub const FLOAT: Self = Self::of(1 << 5, DataType::Double);
    /// `bool`.
    pub const BOOL: Self = Self::of((1 << 2) | (1 << 3), DataType::Bool);
    /// `array`.
    pub const ARRAY: Self = Self::of(1 << 7, DataType::Array);
    /// `object`.
    pub const OBJECT: Self = Self::of(1 << 8, DataType::ANY_OBJECT);
    /// `callable`.
    pub const CALLABLE: Self = Self::of(1 << 12, DataType::Callable);
    /// `iterable`.
    pub const ITERABLE: Self = Self::of(0, DataType::Iterable);
    /// `mixed`.
    pub const MIXED: Self = Self::of(0, DataType::Mixed);
    /// `void`, which only a method can return.
    pub const VOID: Self = Self::of(0, DataType::Void);

    const fn of(mask: u32, data: DataType) -> Self {
        Self {
            mask,
            data,
            nullable: false,
        }
    }

    /// An object of a class.
    #[must_use]
    pub const fn class(name: &'static str) -> Self {
        Self::of(0, DataType::object(name))
    }

    /// The type or null.
    #[must_use]
    pub const fn or_null(self) -> Self {
        Self {
            mask: self.mask | NULL,
            data: self.data,
            nullable: true,
        }
    }
}

/// A parameter of a method.
pub struct Param(Arg<'static>, bool);

impl Param {
    /// A required parameter.
    #[must_use]
    pub fn required(name: &str, ty: Type) -> Self {
        Self(Self::arg(name, ty), true)
    }

    /// A parameter with a default, as PHP source.
    #[must_use]
    pub fn optional(name: &str, ty: Type, default: &str) -> Self {
        Self(Self::arg(name, ty).default(default), false)
    }

    /// `...$name`: any number of values, as the last parameter.
    #[must_use]
    pub fn variadic(name: &str, ty: Type) -> Self {
        Self(Self::arg(name, ty).is_variadic(), false)
    }

    fn arg(name: &str, ty: Type) -> Arg<'static> {
        let arg = Arg::new(name, ty.data);
        if ty.nullable { arg.allow_null() } else { arg }
    }
}

/// Builds a class.
pub struct Class {
    builder: ClassBuilder,
    held: Option<Held>,
    /// Whether its objects cannot be cloned.
    is_alone: bool,
    properties: Vec<Property>,
    /// Methods, in lower case, whose first parameter is an object or a string.
    or_string: Vec<&'static str>,
}

/// What is called when an object is freed, with its handle, and when it is cloned, with that of the
/// clone, too.
struct Held {
    freed: extern "C" fn(u32),
    cloned: Option<extern "C" fn(u32, u32)>,
}

struct Property {
    name: &'static str,
    ty: Type,
    is_private: bool,
}

impl Class {
    fn of(builder: ClassBuilder) -> Self {
        Self {
            builder,
            held: None,
            is_alone: false,
            properties: Vec::new(),
            or_string: Vec::new(),
        }
    }

    /// A final class.
    pub fn new(name: &str) -> Self {
        let flags = ClassFlags::Final | ClassFlags::NoDynamicProperties;
        Self::of(ClassBuilder::new(name).flags(flags))
    }

    /// A final class with only readonly properties.
    pub fn readonly(name: &str) -> Self {
        let flags = ClassFlags::Final | ClassFlags::NoDynamicProperties | ClassFlags::ReadonlyClass;
        Self::of(ClassBuilder::new(name).flags(flags))
    }

    /// Implements an interface.
    pub fn implements(mut self, interface: ClassEntryInfo) -> Self {
        self.builder = self.builder.implements(interface);
        self
    }

    /// Forbids `serialize`.
    pub fn not_serializable(mut self) -> Self {
        let flags = self.builder.get_flags() | ClassFlags::NotSerializable.bits();
        self.builder = self.builder.flags(ClassFlags::from_bits_retain(flags));
        self
    }

    /// A class that is not final and extends `parent`.
    pub fn extending(name: &str, parent: ClassEntryInfo, interface: ClassEntryInfo) -> Self {
        let builder = ClassBuilder::new(name);
        Self::of(builder.extends(parent).implements(interface))
    }

    /// A class that is not final and extends `parent`.
    pub fn extending_class(name: &str, parent: ClassEntryInfo) -> Self {
        Self::of(ClassBuilder::new(name).extends(parent))
    }

    /// An interface that extends another.
    pub fn interface_of(name: &str, parent: ClassEntryInfo) -> Self {
        let mut class = Self::interface(name);
        class.builder = class.builder.implements(parent);
        class
    }

    /// An interface.
    pub fn interface(name: &str) -> Self {
        Self::of(ClassBuilder::new(name).flags(ClassFlags::Interface))
    }

    /// Calls `freed` with the handle of each freed object.
    pub fn held(mut self, freed: extern "C" fn(u32)) -> Self {
        self.held = Some(Held {
            freed,
            cloned: None,
        });
        self
    }

    /// The same for objects that cannot be cloned.
    pub fn held_alone(self, freed: extern "C" fn(u32)) -> Self {
        let mut class = self.held(freed);
        class.is_alone = true;
        class
    }

    /// The same, and calls `cloned` with the handles of each object that is cloned and of its clone.
    pub fn held_by_clones(
        mut self,
        freed: extern "C" fn(u32),
        cloned: extern "C" fn(u32, u32),
    ) -> Self {
        self.held = Some(Held {
            freed,
            cloned: Some(cloned),
        });
        self
    }

    /// A public readonly property.
    pub fn property(self, name: &'static str, ty: Type) -> Self {
        self.declare(name, ty, false)
    }

    /// A private readonly property.
    pub fn private_property(self, name: &'static str, ty: Type) -> Self {
        self.declare(name, ty, true)
    }

    fn declare(mut self, name: &'static str, ty: Type, is_private: bool) -> Self {
        self.properties.push(Property {
            name,
            ty,
            is_private,
        });
        self
    }

    /// A public readonly property, and a method of the same name that returns it.
    pub fn accessor(self, name: &'static str, ty: Type) -> Self {
        self.property(name, ty)
            .method(name, object::accessor, vec![], ty)
    }

    /// A public integer constant.
    pub fn constant(mut self, name: &str, value: i64) -> Self {
        self.builder = match self
            .builder
            .constant(name, value, &[], ConstantFlags::Public)
        {
            Ok(builder) => builder,
            Err(error) => panic!("{name}: {error}"),
        };
        self
    }

    /// The constructor.
    pub fn constructor(self, handler: Handler, params: Vec<Param>) -> Self {
        self.add("__construct", handler, params, None, MethodFlags::Public)
    }

    /// A private constructor: no code outside the class makes objects.
    pub fn private_constructor(self) -> Self {
        extern "C" fn construct(_: &mut ExecuteData, _: &mut Zval) {}
        self.add("__construct", construct, vec![], None, MethodFlags::Private)
    }

    /// A public method without a body, of an interface.
    pub fn abstract_method(self, name: &str, params: Vec<Param>, returns: Type) -> Self {
        let function = FunctionBuilder::new_abstract(name);
        let flags = MethodFlags::Public | MethodFlags::Abstract;
        self.build(function, params, Some(returns), flags)
    }

    /// A public method.
    pub fn method(self, name: &str, handler: Handler, params: Vec<Param>, returns: Type) -> Self {
        self.add(name, handler, params, Some(returns), MethodFlags::Public)
    }

    /// A public method whose first parameter is an object of a class or a string.
    pub fn method_or_string(
        mut self,
        name: &'static str,
        handler: Handler,
        param: Param,
        returns: Type,
    ) -> Self {
        self.or_string.push(name);
        self.method(name, handler, vec![param], returns)
    }

    /// A public static method.
    pub fn static_method(
        self,
        name: &str,
        handler: Handler,
        params: Vec<Param>,
        returns: Type,
    ) -> Self {
        self.add(
            name,
            handler,
            params,
            Some(returns),
            MethodFlags::Public | MethodFlags::Static,
        )
    }

    fn add(
        self,
        name: &str,
        handler: Handler,
        params: Vec<Param>,
        returns: Option<Type>,
        flags: MethodFlags,
    ) -> Self {
        self.build(FunctionBuilder::new(name, handler), params, returns, flags)
    }

    fn build(
        mut self,
        function: FunctionBuilder<'static>,
        params: Vec<Param>,
        returns: Option<Type>,
        flags: MethodFlags,
    ) -> Self {
        let required = params.iter().filter(|param| param.1).count();
        let mut function = function.required_args(required);
        for Param(arg, _) in params {
            function = function.arg(arg);
        }
        if let Some(ty) = returns {
            function = function.returns(ty.data, false, ty.nullable);
        }
        self.builder = self.builder.method(function, flags);
        self
    }

    /// Registers the class and keeps its entry in `slot`.
    ///
    /// # Panics
    ///
    /// If the engine refuses it; `ext-php-rs` turns that into a failed start of the module.
    pub fn register(self, slot: &'static Slot) {
        let registered = self
            .builder
            .registration(|ce, arg_info| {
                // The engine borrows the tables for the life of the module.
                Box::leak(arg_info);
                REGISTERED.set(ce);
            })
            .register();
        if let Err(error) = registered {
            panic!("{error}");
        }
        let ce = REGISTERED.0.swap(std::ptr::null_mut(), Ordering::AcqRel);
        for Property {
            name,
            ty,
            is_private,
        } in self.properties
        {
            let class_name = ty
                .data
                .class_name()
                .map(|name| CString::new(name).unwrap_or_default());
            let class_name = class_name
                .as_ref()
                .map_or(std::ptr::null(), |name| name.as_ptr());
            // SAFETY: `ce` is the class that was just registered, before any object of it exists;
            // the engine copies both names.
            unsafe {
                ffi::altair_declare_readonly(
                    ce,
                    name.as_ptr().cast(),
                    name.len(),
                    ty.mask,
                    class_name,
                    is_private,
                );
            }
        }
        for method in self.or_string {
            // SAFETY: as above; nothing has called the method yet.
            unsafe { ffi::altair_or_string(ce, method.as_ptr().cast(), method.len()) };
        }
        if let Some(Held { freed, cloned }) = self.held {
            // SAFETY: as above.
            unsafe { ffi::altair_hold(ce, freed, cloned, !self.is_alone) };
        }
        slot.0.store(ce, Ordering::Release);
    }
}

/// Registers an enum of strings: the name and the value of each case.
///
/// # Panics
///
/// If a name or value holds a NUL byte.
pub fn register_enum(
    name: &str,
    cases: impl IntoIterator<Item = (String, String)>,
    slot: &'static Slot,
) {
    let c_string =
        |text: &str| CString::new(text).unwrap_or_else(|_| panic!("{text:?}: a NUL byte"));
    let name = c_string(name);
    // SAFETY: at the module's start; the engine copies the name.
    let ce = unsafe { ffi::altair_register_enum(name.as_ptr()) };
    for (name, value) in cases {
        let (name, value) = (c_string(&name), c_string(&value));
        // SAFETY: the enum that was just registered; the engine copies both texts.
        unsafe { ffi::altair_add_case(ce, name.as_ptr(), value.as_ptr()) };
    }
    slot.0.store(ce, Ordering::Release);
}

/// The class that `ClassBuilder::register` has just registered; its hook cannot capture.
static REGISTERED: Slot = Slot::new();

/// `InvalidArgumentException`.
#[must_use]
pub fn invalid_argument_exception() -> &'static ClassEntry {
    // SAFETY: SPL is always present and starts before any other extension.
    unsafe { &*ffi::spl_ce_InvalidArgumentException }
}

/// `RuntimeException`.
#[must_use]
pub fn runtime_exception() -> &'static ClassEntry {
    // SAFETY: as above.
    unsafe { &*ffi::spl_ce_RuntimeException }
}

/// `LogicException`.
#[must_use]
pub fn logic_exception() -> &'static ClassEntry {
    // SAFETY: as above.
    unsafe { &*ffi::spl_ce_LogicException }
}
