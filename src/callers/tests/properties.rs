//! Properties of registries: what is written reads back, edits do what they say
//! and nothing else, no text makes the reader fail otherwise.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use plimsoll_callers::{Caller, CallerId, ChangeError, Fingerprint, Registry, Scope};
use proptest::prelude::*;

fn id() -> impl Strategy<Value = CallerId> {
    "[a-z \u{e9}\u{202e}\"\\\\<]{1,6}".prop_filter_map("an ID", |text| CallerId::parse(&text).ok())
}

fn scopes() -> impl Strategy<Value = Vec<Scope>> {
    proptest::collection::btree_set("[a-z:*\"\u{e9}]{1,5}", 0..4)
        .prop_map(|words| words.iter().filter_map(|w| Scope::parse(w).ok()).collect())
}

fn fingerprint(number: u16) -> Fingerprint {
    Fingerprint::of(&number.to_be_bytes())
}

fn caller() -> impl Strategy<Value = Caller> {
    (id(), 0u16..40, scopes(), 0u64..=i64::MAX as u64).prop_map(|(id, token, scopes, paid)| {
        Caller {
            id,
            fingerprint: fingerprint(token),
            scopes,
            paid_seconds_per_day: paid,
        }
    })
}

fn read_again(registry: &Registry) -> Registry {
    let text = registry.to_text().unwrap();
    assert!(text.starts_with("{\n  \"clients\": [") && text.ends_with("}\n"));
    Registry::parse(text.as_bytes()).unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Add(Caller),
    Limit(CallerId, u64),
    Rotate(CallerId, u16),
    Revoke(CallerId),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let few = || "[a-d]".prop_filter_map("an ID", |text| CallerId::parse(&text).ok());
    let step = prop_oneof![
        4 => (caller(), few()).prop_map(|(caller, id)| Step::Add(Caller { id, ..caller })),
        2 => (few(), any::<u32>()).prop_map(|(id, n)| Step::Limit(id, n.into())),
        3 => (few(), 0u16..40).prop_map(|(id, token)| Step::Rotate(id, token)),
        2 => few().prop_map(Step::Revoke),
    ];
    proptest::collection::vec(step, 0..60)
}

type Model = BTreeMap<CallerId, Caller>;

/// What a step must answer, with the model changed as it must change.
fn expected(step: &Step, model: &mut Model) -> Result<(), ChangeError> {
    let owner = |token: Fingerprint, model: &Model| {
        let mut all = model.values();
        all.find(|caller| caller.fingerprint == token)
            .map(|c| c.id.clone())
    };
    match step {
        Step::Add(caller) if model.contains_key(&caller.id) => Err(ChangeError::Exists),
        Step::Add(caller) if owner(caller.fingerprint, model).is_some() => {
            Err(ChangeError::TokenInUse)
        }
        Step::Add(caller) => {
            model.insert(caller.id.clone(), caller.clone());
            Ok(())
        }
        Step::Revoke(id) => model.remove(id).map(drop).ok_or(ChangeError::NotThere),
        Step::Limit(id, seconds) => {
            let caller = model.get_mut(id).ok_or(ChangeError::NotThere)?;
            caller.paid_seconds_per_day = *seconds;
            Ok(())
        }
        Step::Rotate(id, token) => {
            let taken = owner(fingerprint(*token), model);
            let caller = model.get_mut(id).ok_or(ChangeError::NotThere)?;
            match taken {
                Some(owner) if owner == *id => Err(ChangeError::TokenUnchanged),
                Some(_) => Err(ChangeError::TokenInUse),
                None => {
                    caller.fingerprint = fingerprint(*token);
                    Ok(())
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(callers in proptest::collection::vec(caller(), 0..20)) {
        let mut registry = Registry::default();
        for caller in callers {
            let _ = registry.add(caller);
        }
        prop_assert_eq!(read_again(&registry), registry);
    }

    /// Against a map: every edit changes what it says and nothing else, and
    /// refuses what it must.
    #[test]
    fn edits_follow_a_model(steps in steps()) {
        let mut registry = Registry::default();
        let mut model = Model::new();
        for step in steps {
            let before = registry.clone();
            let answer = match &step {
                Step::Add(caller) => registry.add(caller.clone()),
                Step::Limit(id, seconds) => registry.limit(id, *seconds),
                Step::Rotate(id, token) => registry.rotate(id, fingerprint(*token)),
                Step::Revoke(id) => registry.revoke(id),
            };
            prop_assert_eq!(answer, expected(&step, &mut model));
            if answer.is_err() {
                prop_assert_eq!(&registry, &before, "a refused edit changes nothing");
            }
            let held: Model = registry.callers().iter().map(|c| (c.id.clone(), c.clone())).collect();
            prop_assert_eq!(&held, &model);
            prop_assert_eq!(registry.callers().len(), model.len());
            prop_assert_eq!(&read_again(&registry), &registry);
        }
    }

    #[test]
    fn a_token_finds_its_caller_and_no_other(
        tokens in proptest::collection::btree_set("[!-~]{32,40}", 1..8), other in "[!-~]{0,50}",
    ) {
        let mut registry = Registry::default();
        for (n, token) in tokens.iter().enumerate() {
            registry.add(Caller {
                id: CallerId::parse(&n.to_string()).unwrap(),
                fingerprint: Fingerprint::of(token.as_bytes()),
                scopes: vec![Scope::run()],
                paid_seconds_per_day: 0,
            }).unwrap();
        }
        for (n, token) in tokens.iter().enumerate() {
            let found = registry.find(token).map(|caller| caller.id.to_string());
            prop_assert_eq!(found, Some(n.to_string()));
            let longer = format!("{token} ");
            prop_assert!(registry.find(&longer).is_none());
        }
        prop_assert_eq!(registry.find(&other).is_some(), tokens.contains(&other));
    }

    #[test]
    fn no_bytes_make_the_reader_fail_otherwise(bytes in any::<Vec<u8>>()) {
        let _ = Registry::parse(&bytes);
    }

    /// A good registry with one byte changed or its end cut is read or refused;
    /// what is read is written and read again.
    #[test]
    fn near_misses(at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut text = include_bytes!("../../../testdata/clients/good.json").to_vec();
        let at = at.index(text.len());
        if cut { text.truncate(at); } else { text[at] = byte; }
        if let Ok(registry) = Registry::parse(&text) {
            prop_assert_eq!(read_again(&registry), registry);
        }
    }
}
