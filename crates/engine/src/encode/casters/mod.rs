//! What objects of known classes mean: one table, a class and how it is shown.
//!
//! A caster reads properties, and calls methods of PHP's own classes; of the application and its
//! libraries it calls nothing.

mod dates;
mod doctrine;
mod exceptions;
mod http;
mod laravel;
mod lazy;
mod spl;

use super::node::{BuiltIn, Ended, Key, Node, Property, Shape, Thrown};
pub(super) use lazy::waiting;
pub(super) use spl::is_still;

/// How the objects of a class are shown.
#[derive(Debug)]
pub(super) enum Form {
    /// An Eloquent model.
    Model,
    /// An Eloquent query: its model's class and the query below it.
    ModelQuery,
    /// A query of Laravel's.
    Query,
    /// Some of its properties under other names, those that are not empty.
    Fields(&'static [(&'static str, &'static str)]),
    /// The items of an array in one of its properties.
    Items(&'static str),
    /// A query builder of Doctrine's: its parts, in one property or another, and more of its
    /// properties.
    DoctrineBuilder(
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
    ),
    /// A lazy collection of Doctrine's.
    LazyCollection,
    /// A proxy of Doctrine's.
    DoctrineProxy,
    /// A lazy object of Symfony's.
    SymfonyLazy,
    /// A property that is one line of text.
    Line(&'static str),
    /// A UUID of Ramsey's.
    RamseyUuid,
    /// A date; whether its own properties are of no interest.
    Date { alone: bool },
    /// A time zone.
    Zone,
    /// An interval; whether its own properties are of no interest.
    Interval { alone: bool },
    /// `ArrayObject` and `ArrayIterator`, and which method gives what they hold.
    ArrayLike(BuiltIn),
    /// `SplObjectStorage`.
    ObjectStorage,
    /// `SplDoublyLinkedList`.
    LinkedList,
    /// What an iteration empties, so that a clone is read.
    Consumed,
    /// XML.
    Xml,
    /// An object whose properties are fetched when they are read.
    FetchedRow,
    /// An iterable that fetches.
    Cursor,
    /// An exception.
    Exception,
    /// A request of Symfony's HttpFoundation.
    FoundationRequest,
    /// A response of Symfony's HttpFoundation.
    FoundationResponse,
    /// A request of PSR-7.
    PsrRequest,
    /// A response of PSR-7.
    PsrResponse,
    /// A URI of PSR-7.
    PsrUri,
}

/// The classes, and how they are shown; the first that an object is of applies.
const TABLE: &[(&str, Form)] = &[
    ("Illuminate\\Database\\Eloquent\\Model", Form::Model),
    ("Illuminate\\Database\\Eloquent\\Builder", Form::ModelQuery),
    ("Illuminate\\Database\\Query\\Builder", Form::Query),
    ("Illuminate\\Support\\Collection", Form::Items("items")),
    (
        "Illuminate\\Pagination\\AbstractPaginator",
        Form::Fields(laravel::PAGE),
    ),
    (
        "Illuminate\\Pagination\\AbstractCursorPaginator",
        Form::Fields(laravel::PAGE),
    ),
    ("Doctrine\\Persistence\\Proxy", Form::DoctrineProxy),
    ("Doctrine\\Common\\Persistence\\Proxy", Form::DoctrineProxy),
    (
        "Symfony\\Component\\VarExporter\\LazyObjectInterface",
        Form::SymfonyLazy,
    ),
    (
        "Doctrine\\Common\\Collections\\AbstractLazyCollection",
        Form::LazyCollection,
    ),
    // Before doctrine/collections had a class for it.
    ("Doctrine\\ORM\\PersistentCollection", Form::LazyCollection),
    (
        "Doctrine\\Common\\Collections\\ArrayCollection",
        Form::Items("elements"),
    ),
    (
        "Doctrine\\ORM\\QueryBuilder",
        Form::DoctrineBuilder("_dqlParts", "dqlParts", doctrine::ORM_BUILDER),
    ),
    (
        "Doctrine\\ORM\\AbstractQuery",
        Form::Fields(doctrine::QUERY),
    ),
    (
        "Doctrine\\DBAL\\Query\\QueryBuilder",
        Form::DoctrineBuilder("sqlParts", "sqlParts", doctrine::DBAL_BUILDER),
    ),
    ("Symfony\\Component\\Uid\\AbstractUid", Form::Line("uid")),
    ("Ramsey\\Uuid\\Lazy\\LazyUuidFromString", Form::Line("uuid")),
    ("Ramsey\\Uuid\\UuidInterface", Form::RamseyUuid),
    ("Carbon\\CarbonInterface", Form::Date { alone: true }),
    ("DateTimeInterface", Form::Date { alone: false }),
    ("DateTimeZone", Form::Zone),
    ("Carbon\\CarbonInterval", Form::Interval { alone: true }),
    ("DateInterval", Form::Interval { alone: false }),
    ("ArrayObject", Form::ArrayLike(BuiltIn::ArrayObjectCopy)),
    ("ArrayIterator", Form::ArrayLike(BuiltIn::ArrayIteratorCopy)),
    ("SplObjectStorage", Form::ObjectStorage),
    ("SplDoublyLinkedList", Form::LinkedList),
    ("SplHeap", Form::Consumed),
    ("SplPriorityQueue", Form::Consumed),
    ("SimpleXMLElement", Form::Xml),
    ("DOMNode", Form::Xml),
    ("Dom\\Node", Form::Xml),
    ("PDORow", Form::FetchedRow),
    ("mysqli_result", Form::Cursor),
    ("Throwable", Form::Exception),
    (
        "Symfony\\Component\\HttpFoundation\\Request",
        Form::FoundationRequest,
    ),
    (
        "Symfony\\Component\\HttpFoundation\\Response",
        Form::FoundationResponse,
    ),
    ("Psr\\Http\\Message\\RequestInterface", Form::PsrRequest),
    ("Psr\\Http\\Message\\ResponseInterface", Form::PsrResponse),
    ("Psr\\Http\\Message\\UriInterface", Form::PsrUri),
];

/// How the objects of a node's class are shown.
pub(super) fn form_of<N: Node>(node: &N) -> Option<&'static Form> {
    let row = TABLE.iter().find(|(class, _)| node.is_a(class));
    match row {
        Some((_, form)) => Some(form),
        // A class may have the trait without the interface.
        None if node.declares(lazy::STATE) => Some(&Form::SymfonyLazy),
        None => None,
    }
}

/// How far a caster reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Entries and properties.
    pub entries: usize,
    /// Items of an iterable.
    pub preview: usize,
    /// Whether what a model hides is hidden.
    pub redact: bool,
}

/// A value that a caster gives.
pub(super) enum Item<N> {
    /// A value of the application's.
    Node(N),
    Text(String),
    Int(i64),
    Bool(bool),
    /// A value that is not to be shown.
    Hidden,
    /// A typed property that has no value yet.
    Uninitialized,
    /// A list of the caster's own; as deep as the object.
    List(Vec<Item<N>>),
    /// A map of the caster's own, and how many entries there are.
    Map(Vec<(Key, Item<N>)>, usize),
}

/// What is shown of an object.
pub(super) enum Content<N> {
    /// What it says of itself in `__debugInfo`, else its properties.
    Own,
    /// These of its properties, of so many.
    Properties(Vec<Property<N>>, usize),
    /// These fields, in place of its properties.
    Fields(Vec<(Key, Item<N>)>),
    /// It is an iterable of these items, the first of so many.
    Items(Vec<(Item<N>, Item<N>)>, usize),
    /// It is an iterable, read by its iterator or that of a clone.
    Iterator(Option<N>),
    /// It is an iterable that is not read.
    Unread,
    /// It stands for another object.
    Instance(N),
    /// Looking threw.
    Threw(Thrown),
}

/// How one object is shown.
pub(super) struct View<N> {
    pub display: Option<String>,
    pub zone: Option<String>,
    pub parameters: Option<Vec<String>>,
    /// Whether it is not initialised.
    pub lazy: bool,
    /// The class that it stands for, if its own is a proxy's.
    pub stands_for: Option<String>,
    pub content: Content<N>,
}

impl<N> View<N> {
    pub(super) fn of(content: Content<N>) -> Self {
        Self {
            display: None,
            zone: None,
            parameters: None,
            lazy: false,
            stands_for: None,
            content,
        }
    }

    fn line(display: Option<String>) -> Option<Self> {
        display.map(|display| Self {
            display: Some(display),
            ..Self::of(Content::Fields(Vec::new()))
        })
    }
}

/// How an object is shown; `None` if it is not what its class promises.
pub(super) fn view<N: Node>(form: &Form, node: &N, reach: Reach) -> Result<Option<View<N>>, Ended> {
    Ok(match form {
        Form::Model => laravel::model(node, reach),
        Form::ModelQuery => laravel::model_query(node, reach),
        Form::Query => Some(View::of(Content::Fields(laravel::query(node, reach)))),
        Form::Fields(names) => Some(View::of(Content::Fields(fields(node, names)))),
        Form::Items(property) => held(node, property, reach),
        Form::DoctrineBuilder(old, new, names) => {
            Some(doctrine::builder(node, [old, new], names, reach))
        }
        Form::LazyCollection => doctrine::collection(node, reach),
        Form::DoctrineProxy => doctrine::proxy(node, reach),
        Form::SymfonyLazy => lazy::symfony(node, reach),
        Form::Line(property) => View::line(text(node, "", property)),
        Form::RamseyUuid => View::line(dates::ramsey(node)),
        Form::Date { alone } => dates::date(node, *alone, reach),
        Form::Zone => View::line(made(node, BuiltIn::ZoneName)),
        Form::Interval { alone } => dates::interval(node, *alone, reach),
        Form::ArrayLike(method) => spl::array_like(node, *method, reach),
        Form::ObjectStorage => spl::object_storage(node, reach),
        Form::LinkedList => spl::linked_list(node, reach),
        Form::Consumed => Some(spl::consumed(node)?),
        Form::Xml => made(node, BuiltIn::Xml)
            .map(|xml| View::of(Content::Fields(vec![("xml".into(), Item::Text(xml))]))),
        Form::FetchedRow => Some(View {
            lazy: true,
            ..View::of(Content::Fields(Vec::new()))
        }),
        Form::Cursor => Some(View::of(Content::Unread)),
        Form::Exception => Some(exceptions::exception(node, reach)),
        Form::FoundationRequest => Some(http::foundation_request(node, reach)),
        Form::FoundationResponse => Some(http::foundation_response(node)),
        Form::PsrRequest => http::psr_request(node, reach),
        Form::PsrResponse => http::psr_response(node),
        Form::PsrUri => View::line(http::uri(node, reach)),
    })
}

/// The text of a property that holds one.
fn text<N: Node>(node: &N, class: &str, name: &str) -> Option<String> {
    let value = node.property(class, name)?;
    match value.shape() {
        Shape::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    }
}

fn int<N: Node>(node: &N, name: &str) -> Option<i64> {
    match node.property("", name)?.shape() {
        Shape::Int(n) => Some(n),
        _ => None,
    }
}

fn flag<N: Node>(node: &N, name: &str) -> Option<bool> {
    match node.property("", name)?.shape() {
        Shape::Bool(b) => Some(b),
        _ => None,
    }
}

/// The text that a built-in method gives.
fn made<N: Node>(node: &N, method: BuiltIn) -> Option<String> {
    match node.built_in(method)?.shape() {
        Shape::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    }
}

/// The entries of a property that is an array, and how many there are.
fn entries<N: Node>(node: &N, name: &str, most: usize) -> Option<(Vec<(Key, N)>, usize)> {
    let array = node.property("", name)?;
    match array.shape() {
        Shape::Array { count, .. } => Some((array.entries(most), count)),
        _ => None,
    }
}

/// The texts of a property that is a list of them.
fn texts<N: Node>(node: &N, name: &str, most: usize) -> Vec<String> {
    let (entries, _) = entries(node, name, most).unwrap_or_default();
    let texts = entries.iter().filter_map(|(_, value)| match value.shape() {
        Shape::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    });
    texts.collect()
}

/// Some properties under other names; those that are null, false or empty say nothing.
fn fields<N: Node>(node: &N, names: &[(&str, &str)]) -> Vec<(Key, Item<N>)> {
    let mut found: Vec<(Key, Item<N>)> = Vec::new();
    for (shown, name) in names {
        let Some(value) = node.property("", name) else {
            continue;
        };
        if matches!(
            value.shape(),
            Shape::Null | Shape::Bool(false) | Shape::Array { count: 0, .. }
        ) {
            continue;
        }
        let key = Key::from(*shown);
        if !found.iter().any(|(known, _)| *known == key) {
            found.push((key, Item::Node(value)));
        }
    }
    found
}

/// The items of an array in a property.
fn held<N: Node>(node: &N, property: &str, reach: Reach) -> Option<View<N>> {
    let (items, count) = entries(node, property, reach.preview)?;
    Some(View::of(Content::Items(keyed(items), count)))
}

fn keyed<N: Node>(items: Vec<(Key, N)>) -> Vec<(Item<N>, Item<N>)> {
    let items = items.into_iter();
    let items = items.map(|(key, value)| (key_item(&key), Item::Node(value)));
    items.collect()
}

fn key_item<N>(key: &Key) -> Item<N> {
    match key {
        Key::Int(n) => Item::Int(*n),
        Key::Bytes(bytes) => Item::Text(String::from_utf8_lossy(bytes).into_owned()),
    }
}
