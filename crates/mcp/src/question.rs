//! The question to the person at the client: whether a call may have what the server does not
//! permit by itself.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, EnumSchema, InputRequest, InputRequests, InputResponses, JsonObject,
    RequestStateCodec, SealOptions,
};
use serde_json::{Value, json};

use crate::permits::{Wanted, arguments, without};
use crate::tool;
use crate::visible::{block, line};

/// How long a person has for an answer. No answer is a decline.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Characters of code and arguments that a person is shown. More is refused unasked: nobody reads
/// it.
const SHOWN_MAX: usize = 4000;
/// How long a sealed question can be answered.
const SEALED_FOR: Duration = Duration::from_secs(600);
/// Sealed questions without an answer that are remembered; further ones replace the oldest.
const OPEN_MAX: usize = 100;

/// The name of the question, of its only field, and the two values of that.
const QUESTION: &str = "permission";
const FIELD: &str = "decision";
const DECLINE: &str = "decline";
const ALLOW: &str = "allow once";

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// This call may run.
    Allowed,
    /// It may not.
    Declined,
    /// The person closed the question without an answer.
    Dismissed,
    /// There was no answer in time.
    None,
    /// The client could not ask, for this reason.
    Failed(String),
}

/// Whether a client can ask a person to fill in a form. One that names no mode means forms.
pub fn can_ask(client: Option<&ClientCapabilities>) -> bool {
    let declared = client.and_then(|client| client.elicitation.as_ref());
    declared.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// The question about a call with these arguments, or why it is not asked: there is too much to
/// read.
pub fn ask(
    root: &Path,
    given: Option<&JsonObject>,
    wanted: &[Wanted],
) -> Result<ElicitRequestParams, String> {
    let given = |name| given.and_then(|given| given.get(name));
    let snippet = given(tool::SNIPPET).and_then(Value::as_str);
    let mut shown = block(snippet.unwrap_or_default());
    let variables = given(tool::ARGUMENTS).and_then(Value::as_object);
    if let Some(variables) = variables.filter(|variables| !variables.is_empty()) {
        shown.push_str("Its variables:\n");
        for (name, value) in variables {
            shown.push_str(&block(&format!("${name} = {value}")));
        }
    }
    let count = shown.chars().count();
    if count > SHOWN_MAX {
        return Err(format!(
            "Nothing was run. A person has to allow {}, and is shown the code and its arguments, which have {count} characters: at most {SHOWN_MAX} can be asked about. Make it shorter. {}",
            arguments(wanted),
            without(wanted)
        ));
    }
    let means: Vec<String> = wanted
        .iter()
        .map(|wanted| format!("- {} ({})\n", wanted.means(), wanted.argument()))
        .collect();
    let root = line(&root.to_string_lossy());
    let message = format!(
        "An agent asks to run PHP in {root} with more than this server permits. The code could then:\n{}\nThe code:\n{shown}\nAllow this run, and no other?",
        means.concat()
    );
    let values = vec![DECLINE.to_owned(), ALLOW.to_owned()];
    let decision = EnumSchema::builder(values).untitled().build();
    let schema = ElicitationSchema::builder()
        .required_enum_schema(FIELD, decision)
        .build()
        .map_err(str::to_owned)?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema,
    })
}

/// What a person has answered. Only the value itself is consent.
pub fn read(answer: &ElicitResult) -> Answer {
    let decision = answer.content.as_ref().and_then(|given| given.get(FIELD));
    match answer.action {
        ElicitationAction::Accept if decision.and_then(Value::as_str) == Some(ALLOW) => {
            Answer::Allowed
        }
        ElicitationAction::Cancel => Answer::Dismissed,
        _ => Answer::Declined,
    }
}

/// What the agent is told where the answer is not to run.
pub fn refusal(answer: &Answer, wanted: &[Wanted]) -> String {
    let what = arguments(wanted);
    let why = match answer {
        Answer::Allowed | Answer::Declined => format!("The person who was asked declined {what}."),
        Answer::Dismissed => {
            format!("The person who was asked for {what} closed the question without an answer.")
        }
        Answer::None => format!(
            "Nobody answered whether {what} is allowed within {} s, which counts as a decline.",
            PATIENCE.as_secs()
        ),
        Answer::Failed(why) => {
            format!(
                "A person has to allow {what}, and the client could not ask: {}.",
                line(why)
            )
        }
    };
    format!("Nothing was run. {why} {}", without(wanted))
}

/// Questions that the protocol gives back to the client, which asks and calls again.
#[derive(Debug)]
pub struct Sealed {
    codec: RequestStateCodec,
    /// How long a question can be answered.
    lasts: Duration,
    /// The sealed questions that have no answer, and when they were asked.
    open: Mutex<HashMap<String, Instant>>,
}

impl Sealed {
    /// With a key of this server's own.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn new() -> std::io::Result<Self> {
        let key: [u8; RequestStateCodec::MIN_KEY_LENGTH] = random()?;
        Ok(Self {
            codec: RequestStateCodec::try_new(key).map_err(std::io::Error::other)?,
            lasts: SEALED_FOR,
            open: Mutex::default(),
        })
    }

    /// The request that a client puts to a person, and the state that it sends with the answer.
    pub fn ask(
        &self,
        question: ElicitRequestParams,
        bound: &[u8],
    ) -> std::io::Result<(InputRequests, String)> {
        let once: [u8; 16] = random()?;
        let once = once.map(|byte| format!("{byte:02x}")).concat();
        let options = SealOptions::new().associated_data(bound).ttl(self.lasts);
        let state = self.codec.seal_with(once.as_bytes(), &options);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, asked| asked.elapsed() < self.lasts);
        if open.len() >= OPEN_MAX
            && let Some(oldest) = open.iter().min_by_key(|(_, asked)| **asked)
        {
            let oldest = oldest.0.clone();
            open.remove(&oldest);
        }
        open.insert(once, Instant::now());
        let request = InputRequest::Elicitation(ElicitRequest::new(question));
        Ok((BTreeMap::from([(QUESTION.to_owned(), request)]), state))
    }

    /// The answer to a sealed question. It counts once, and for the call that it was asked for.
    ///
    /// # Errors
    ///
    /// Why it counts for nothing.
    pub fn answer(
        &self,
        state: &str,
        bound: &[u8],
        given: Option<&InputResponses>,
    ) -> Result<Answer, String> {
        let refuse = |why: String| {
            Err(format!(
                "Nothing was run. The answer to the question does not count: {why}. Call again without it to have the question asked again."
            ))
        };
        let once = match self.codec.open_with(state, bound) {
            Ok(once) => String::from_utf8_lossy(&once).into_owned(),
            Err(why) => return refuse(why.to_string()),
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.remove(&once).is_none() {
            return refuse("it was given before".into());
        }
        drop(open);
        let given = given.and_then(|given| given.get(QUESTION));
        match given.map(|given| serde_json::from_value(given.clone())) {
            Some(Ok(answer)) => Ok(read(&answer)),
            Some(Err(why)) => refuse(why.to_string()),
            None => Ok(Answer::Dismissed),
        }
    }
}

/// What a sealed question is about: the whole call, where it would run, and what it lacks.
pub fn bound(
    given: Option<&JsonObject>,
    root: &Path,
    services: Option<&[String]>,
    wanted: &[Wanted],
) -> Vec<u8> {
    json!([
        tool::NAME,
        given,
        root.as_os_str().as_encoded_bytes(),
        services,
        arguments(wanted)
    ])
    .to_string()
    .into_bytes()
}

fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn message(given: Value, wanted: &[Wanted]) -> Result<String, String> {
        let asked = ask(Path::new("/srv/shop"), given.as_object(), wanted)?;
        Ok(serde_json::to_value(asked).unwrap()["message"]
            .as_str()
            .unwrap()
            .to_owned())
    }

    fn answer(given: Value) -> Answer {
        read(&serde_json::from_value(given).unwrap())
    }

    #[test]
    fn the_question_shows_all_of_the_code_and_its_variables() {
        let given = json!({"snippet": "f();\n// \u{202e}", "arguments": {"id": ["7\n", null, 0.5]}, "allow_writes": true});
        let asked = message(given, &[Wanted::Writes, Wanted::Network]).unwrap();
        for shown in [
            "in /srv/shop ",
            "change and delete files",
            "(`allow_writes`)",
            "(`allow_network`)",
            "\n| f();\n| // \\u{202e}\n",
            "\n| $id = [\"7\\n\",null,0.5]\n",
        ] {
            assert!(asked.contains(shown), "{shown}: {asked}");
        }
    }

    #[test]
    fn what_nobody_would_read_is_not_asked() {
        let code = "x".repeat(SHOWN_MAX - 3);
        assert!(message(json!({"snippet": code}), &[Wanted::Writes]).is_ok());
        let why = message(json!({"snippet": format!("{code}x")}), &[Wanted::Writes]).unwrap_err();
        assert!(
            why.starts_with("Nothing was run.") && why.contains("4001 characters"),
            "{why}"
        );
        // A hidden character counts as what is shown of it, and arguments count as well.
        let hidden = "\u{200b}".repeat(500);
        assert!(message(json!({"snippet": hidden}), &[Wanted::Writes]).is_err());
        let given = json!({"snippet": "1", "arguments": {"x": code}});
        assert!(message(given, &[Wanted::Writes]).is_err());
    }

    #[test]
    fn only_the_value_itself_is_consent() {
        let allowed = json!({"action": "accept", "content": {"decision": "allow once"}});
        assert_eq!(answer(allowed), Answer::Allowed);
        for given in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept", "content": {"decision": "decline"}}),
            json!({"action": "accept", "content": {"decision": true}}),
            json!({"action": "accept", "content": "allow once"}),
            json!({"action": "decline", "content": {"decision": "allow once"}}),
        ] {
            assert_eq!(answer(given.clone()), Answer::Declined, "{given}");
        }
        let cancelled = json!({"action": "cancel", "content": {"decision": "allow once"}});
        assert_eq!(answer(cancelled), Answer::Dismissed);
    }

    #[test]
    fn a_client_that_names_no_mode_has_forms() {
        for (declared, expected) in [
            (json!({"elicitation": {}}), true),
            (json!({"elicitation": {"form": {}}}), true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true),
            (json!({"elicitation": {"url": {}}}), false),
            (json!({}), false),
        ] {
            let client = serde_json::from_value(declared.clone()).unwrap();
            assert_eq!(can_ask(Some(&client)), expected, "{declared}");
        }
        assert!(!can_ask(None));
    }

    #[test]
    fn a_sealed_answer_counts_once_and_for_its_call() {
        let sealed = Sealed::new().unwrap();
        let wanted = [Wanted::Writes];
        let given = json!({"snippet": "f();", "allow_writes": true});
        let of = |given: &Value, root: &str, services: Option<&[String]>, wanted: &[Wanted]| {
            bound(given.as_object(), Path::new(root), services, wanted)
        };
        let own = of(&given, "/a", None, &wanted);
        let question = || ask(Path::new("/a"), given.as_object(), &wanted).unwrap();
        let yes: InputResponses = serde_json::from_value(
            json!({"permission": {"action": "accept", "content": {"decision": "allow once"}}}),
        )
        .unwrap();
        let (requests, state) = sealed.ask(question(), &own).unwrap();
        assert_eq!(requests.len(), 1);
        let other = json!({"snippet": "g();", "allow_writes": true});
        for elsewhere in [
            of(&other, "/a", None, &wanted),
            of(&given, "/b", None, &wanted),
            of(&given, "/a", Some(&["db:1".into()]), &wanted),
            of(&given, "/a", None, &[Wanted::Network]),
        ] {
            assert!(sealed.answer(&state, &elsewhere, Some(&yes)).is_err());
        }
        assert!(
            Sealed::new()
                .unwrap()
                .answer(&state, &own, Some(&yes))
                .is_err()
        );
        assert!(sealed.answer("rs1.forged.state", &own, Some(&yes)).is_err());
        assert_eq!(sealed.answer(&state, &own, Some(&yes)), Ok(Answer::Allowed));
        let again = sealed.answer(&state, &own, Some(&yes)).unwrap_err();
        assert!(again.contains("it was given before"), "{again}");
        // No answer is none, and uses the question up.
        let (_, state) = sealed.ask(question(), &own).unwrap();
        assert_eq!(sealed.answer(&state, &own, None), Ok(Answer::Dismissed));
        assert!(sealed.answer(&state, &own, Some(&yes)).is_err());
    }

    #[test]
    fn a_sealed_question_does_not_last() {
        let sealed = Sealed {
            lasts: Duration::from_millis(1),
            ..Sealed::new().unwrap()
        };
        let given = json!({"snippet": "f();", "allow_writes": true});
        let question = ask(Path::new("/a"), given.as_object(), &[Wanted::Writes]).unwrap();
        let (_, state) = sealed.ask(question, b"").unwrap();
        std::thread::sleep(Duration::from_millis(5));
        let why = sealed.answer(&state, b"", None).unwrap_err();
        assert!(why.contains("expired"), "{why}");
    }

    #[test]
    fn questions_without_an_answer_take_bounded_memory() {
        let sealed = Sealed::new().unwrap();
        let given = json!({"snippet": "f();", "allow_writes": true});
        for _ in 0..=OPEN_MAX {
            let question = ask(Path::new("/a"), given.as_object(), &[Wanted::Writes]).unwrap();
            sealed.ask(question, b"").unwrap();
        }
        assert_eq!(sealed.open.lock().unwrap().len(), OPEN_MAX);
    }
}
