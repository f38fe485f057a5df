//! Requests and responses.

use super::{Content, Item, Reach, View, entries, int, text};
use crate::encode::node::{Key, Node, Shape};
use crate::redaction::is_secret_name;

/// Headers that are shown, and values of one.
const HEADERS: usize = 100;

/// A request of HttpFoundation.
pub(super) fn foundation_request<N: Node>(node: &N, reach: Reach) -> View<N> {
    let server = node.property("", "server");
    let parameter = |name: &str| {
        let (found, _) = entries(server.as_ref()?, "parameters", 1_000)?;
        let (_, value) = found.into_iter().find(|(key, _)| key.text() == name)?;
        match value.shape() {
            Shape::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        }
    };
    let method = text(node, "", "method").or_else(|| parameter("REQUEST_METHOD"));
    let target = text(node, "", "requestUri").or_else(|| parameter("REQUEST_URI"));
    let mut shown = Vec::new();
    push(&mut shown, "method", method.map(Item::Text));
    let target = target.map(|target| masked(&target, reach));
    push(&mut shown, "target", target.map(Item::Text));
    push(&mut shown, "headers", bag(node));
    for (name, of) in [
        ("query", "query"),
        ("request", "request"),
        ("attributes", "attributes"),
    ] {
        let held = node.property("", of).and_then(|bag| {
            let (entries, count) = entries(&bag, "parameters", HEADERS)?;
            (count > 0).then_some((entries, count))
        });
        let held = held.map(|(entries, count)| {
            let entries = entries.into_iter();
            let entries = entries.map(|(key, value)| (key, Item::Node(value)));
            Item::Map(entries.collect(), count)
        });
        push(&mut shown, name, held);
    }
    push(&mut shown, "body_length", length(node).map(Item::Int));
    View::of(Content::Fields(shown))
}

/// A response of HttpFoundation.
pub(super) fn foundation_response<N: Node>(node: &N) -> View<N> {
    let mut shown = Vec::new();
    push(&mut shown, "status", int(node, "statusCode").map(Item::Int));
    push(&mut shown, "headers", bag(node));
    push(&mut shown, "body_length", length(node).map(Item::Int));
    View::of(Content::Fields(shown))
}

/// A request of PSR-7, as Guzzle, Nyholm, Laminas and Slim keep it.
pub(super) fn psr_request<N: Node>(node: &N, reach: Reach) -> Option<View<N>> {
    let method = text(node, "", "method")?;
    let target = text(node, "", "requestTarget").filter(|target| !target.is_empty());
    let target = target.map(|target| masked(&target, reach));
    let target = target.or_else(|| uri(&node.property("", "uri")?, reach));
    let mut shown = Vec::new();
    push(&mut shown, "method", Some(Item::Text(method)));
    push(&mut shown, "target", target.map(Item::Text));
    Some(psr_message(node, shown))
}

/// A response of PSR-7.
pub(super) fn psr_response<N: Node>(node: &N) -> Option<View<N>> {
    let status = int(node, "statusCode").or_else(|| int(node, "status"))?;
    let mut shown = Vec::new();
    push(&mut shown, "status", Some(Item::Int(status)));
    let reason = text(node, "", "reasonPhrase").filter(|reason| !reason.is_empty());
    push(&mut shown, "reason", reason.map(Item::Text));
    Some(psr_message(node, shown))
}

/// What requests and responses of PSR-7 have in common, behind what each has of its own.
fn psr_message<N: Node>(node: &N, mut shown: Vec<(Key, Item<N>)>) -> View<N> {
    push(&mut shown, "headers", headers(node));
    push(
        &mut shown,
        "body_length",
        stream_length(node).map(Item::Int),
    );
    View::of(Content::Fields(shown))
}

/// A URI from its parts. What stands before the host, and in its query, may be a password.
pub(super) fn uri<N: Node>(node: &N, reach: Reach) -> Option<String> {
    let part = |name: &str| text(node, "", name).filter(|part| !part.is_empty());
    let path = text(node, "", "path")?;
    let mut uri = String::new();
    if let Some(scheme) = part("scheme") {
        uri.push_str(&format!("{scheme}:"));
    }
    if let Some(host) = part("host") {
        let user = match part("userInfo") {
            Some(user) if reach.redact && user.contains(':') => {
                format!("{}:***@", user.split(':').next()?)
            }
            Some(user) => format!("{user}@"),
            None => String::new(),
        };
        let port = int(node, "port").map_or(String::new(), |port| format!(":{port}"));
        uri.push_str(&format!("//{user}{host}{port}"));
    }
    uri.push_str(&path);
    if let Some(query) = part("query") {
        uri.push_str(&format!("?{query}"));
    }
    if let Some(fragment) = part("fragment") {
        uri.push_str(&format!("#{fragment}"));
    }
    Some(masked(&uri, reach))
}

/// A request's target without the values of parameters whose names look secret.
fn masked(target: &str, reach: Reach) -> String {
    let Some((path, query)) = target.split_once('?').filter(|_| reach.redact) else {
        return target.to_owned();
    };
    let parameters = query.split('&').map(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match !value.is_empty() && is_secret_name(name) {
            true => format!("{name}=***"),
            false => parameter.to_owned(),
        }
    });
    format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
}

fn push<N>(shown: &mut Vec<(Key, Item<N>)>, name: &str, item: Option<Item<N>>) {
    if let Some(item) = item {
        shown.push((name.into(), item));
    }
}

/// The headers of a bag.
fn bag<N: Node>(node: &N) -> Option<Item<N>> {
    headers(&node.property("", "headers")?)
}

/// Headers, each in one line.
fn headers<N: Node>(node: &N) -> Option<Item<N>> {
    let (headers, count) = entries(node, "headers", HEADERS)?;
    let lines = headers.into_iter().map(|(name, values)| {
        let line = match values.shape() {
            Shape::Array { .. } => {
                let values = values.entries(HEADERS);
                let values = values.iter().map(|(_, value)| line_of(value));
                Item::Text(values.collect::<Vec<_>>().join(", "))
            }
            _ => Item::Node(values),
        };
        (name, line)
    });
    Some(Item::Map(lines.collect(), count))
}

fn line_of<N: Node>(value: &N) -> String {
    match value.shape() {
        Shape::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Shape::Int(n) => n.to_string(),
        _ => String::new(),
    }
}

/// The bytes of a body that is a text.
fn length<N: Node>(node: &N) -> Option<i64> {
    match node.property("", "content")?.shape() {
        Shape::Bytes(bytes) => i64::try_from(bytes.len()).ok(),
        _ => None,
    }
}

/// The bytes of a body that is a stream, if it knows them.
fn stream_length<N: Node>(node: &N) -> Option<i64> {
    let stream = ["stream", "body"].iter().find_map(|name| {
        let stream = node.property("", name)?;
        matches!(stream.shape(), Shape::Object(_)).then_some(stream)
    })?;
    // The property is empty until somebody asks; the stream below knows.
    int(&stream, "size").or_else(|| stream.property("", "stream")?.stream_length())
}
