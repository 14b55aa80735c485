//! Policy: what good evidence must also state. Every rule is judged over every
//! call, in the pass that verifies; unmet rules are exit 5, apart from refused
//! evidence. A rule that no call was there to meet is not met either.
//!
//! A policy is about what records state. Tier, provider, software and time are
//! the daemon's words, never hardware attestation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgAction, ArgMatches};
use plimsoll_attestation::bundle::{Call, Visitor};
use plimsoll_console::{Class, Failure, values};
use plimsoll_record::outcome::is_success;
use plimsoll_wire::tier;
use serde::Serialize;

/// One rule and what was seen of it.
#[derive(Clone, Debug)]
struct Rule {
    flag: &'static str,
    value: String,
    class: Class,
    test: Test,
    met: u64,
    unmet: u64,
    first: Option<Unmet>,
}

#[derive(Clone, Debug)]
struct Unmet {
    line: u64,
    found: String,
}

#[derive(Clone, Debug)]
enum Test {
    Tier(String),
    Provider(Vec<String>),
    Software(Vec<String>),
    Environment,
    /// Ended at most so many milliseconds before the clock at its check: the
    /// clock moves on while a growing file is followed.
    MaxAge(i64),
    NotBefore(i64),
    NotAfter(i64),
    Success,
}

/// The rules of one command line, in the order they are judged.
#[derive(Clone, Debug, Default)]
pub struct Policies(Vec<Rule>);

/// A rule as a script sees it.
#[derive(Serialize)]
pub struct Verdict {
    flag: &'static str,
    met: bool,
}

/// The flags of every policy.
pub fn flags() -> [Arg; 8] {
    let text = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name(name).help(help)
    };
    [
        text(
            "require-tier",
            "TIER",
            "Every call ran behind this tier or a stronger one",
        )
        .value_parser(values::words(&values::TIERS)),
        text(
            "require-provider",
            "NAME",
            "Every call's provider is one of these; repeatable",
        )
        .action(ArgAction::Append),
        text(
            "require-software",
            "ID",
            "Every call's software is one of these; repeatable",
        )
        .action(ArgAction::Append),
        Arg::new("require-environment")
            .long("require-environment")
            .action(ArgAction::SetTrue)
            .help("Every call states its environment"),
        text(
            "max-age",
            "D",
            "Every call ended at most this long ago, and not in the future",
        )
        .value_parser(values::duration),
        text(
            "not-before",
            "T",
            "Every call started at or after this time",
        )
        .value_parser(values::time),
        text("not-after", "T", "Every call ended at or before this time")
            .value_parser(values::time),
        text("require-outcome", "OUTCOME", "Every call was a success")
            .value_parser(values::words(&["success"])),
    ]
}

impl Policies {
    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> Self {
        let mut rules = Vec::new();
        let mut add = |flag, value, class, test| {
            rules.push(Rule {
                flag,
                value,
                class,
                test,
                met: 0,
                unmet: 0,
                first: None,
            });
        };
        let all = |id: &str| -> Vec<String> {
            matches
                .get_many::<String>(id)
                .unwrap_or_default()
                .cloned()
                .collect()
        };
        let time = |id: &str| matches.get_one::<i64>(id).copied();
        if let Some(tier) = matches.get_one::<String>("require-tier") {
            let test = Test::Tier(tier.clone());
            add("--require-tier", tier.clone(), Class::PolicyTier, test);
        }
        let providers = all("require-provider");
        if !providers.is_empty() {
            let value = providers.join(", ");
            let test = Test::Provider(providers);
            add("--require-provider", value, Class::PolicyProvider, test);
        }
        let software = all("require-software");
        if !software.is_empty() {
            let value = software.join(", ");
            let test = Test::Software(software);
            add("--require-software", value, Class::PolicySoftware, test);
        }
        if matches.get_flag("require-environment") {
            let class = Class::PolicyEnvironment;
            add(
                "--require-environment",
                String::new(),
                class,
                Test::Environment,
            );
        }
        if let Some(age) = matches.get_one::<Duration>("max-age") {
            let test = Test::MaxAge(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
            add("--max-age", format!("{age:?}"), Class::PolicyTime, test);
        }
        if let Some(at) = time("not-before") {
            let test = Test::NotBefore(at);
            add("--not-before", at.to_string(), Class::PolicyTime, test);
        }
        if let Some(at) = time("not-after") {
            let test = Test::NotAfter(at);
            add("--not-after", at.to_string(), Class::PolicyTime, test);
        }
        if matches.contains_id("require-outcome") {
            let class = Class::PolicyOutcome;
            add(
                "--require-outcome",
                "success".to_owned(),
                class,
                Test::Success,
            );
        }
        Policies(rules)
    }

    /// Whether there is any rule.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Judges a call.
    pub fn judge(&mut self, call: &Call<'_>) {
        for rule in &mut self.0 {
            match rule.test.unmet(call) {
                None => rule.met += 1,
                Some(found) => {
                    rule.unmet += 1;
                    rule.first.get_or_insert(Unmet {
                        line: call.line,
                        found,
                    });
                }
            }
        }
    }

    /// The rules that this call was the first not to meet, by their flags.
    pub fn broken_at(&self, line: u64) -> Vec<&'static str> {
        let first = |rule: &&Rule| rule.first.as_ref().is_some_and(|first| first.line == line);
        self.0.iter().filter(first).map(|rule| rule.flag).collect()
    }

    /// A line for each rule that is met.
    pub fn met_lines(&self) -> Vec<String> {
        self.0
            .iter()
            .filter(|rule| rule.is_met())
            .map(|rule| {
                let value = if rule.value.is_empty() {
                    String::new()
                } else {
                    format!(" {}", plimsoll_console::escape::line(&rule.value))
                };
                let qualified = match rule.test {
                    Test::Tier(_) => "; stated by the daemon; not hardware attestation",
                    _ => "",
                };
                format!(
                    "policy {}{value}: met by {} records{qualified}",
                    rule.flag, rule.met
                )
            })
            .collect()
    }

    /// A failure for each rule that is not met.
    pub fn failures(&self, file: &std::path::Path) -> Vec<Failure> {
        self.0
            .iter()
            .filter(|rule| !rule.is_met())
            .map(|rule| match &rule.first {
                Some(first) => rule.failure(first, file),
                None => rule.nothing_judged(file),
            })
            .collect()
    }

    /// Every rule's verdict.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.0
            .iter()
            .map(|rule| Verdict {
                flag: rule.flag,
                met: rule.is_met(),
            })
            .collect()
    }
}

impl Visitor for Policies {
    fn call(&mut self, call: &Call<'_>) {
        self.judge(call);
    }
}

impl Rule {
    /// Met by every call, and by one at least: a rule that nothing was judged
    /// by says nothing of the work it was meant for.
    fn is_met(&self) -> bool {
        self.unmet == 0 && self.met > 0
    }

    fn nothing_judged(&self, file: &std::path::Path) -> Failure {
        Failure::new(
            self.class,
            format!("{} had nothing to judge: there is no call", self.flag),
            "The evidence verifies and holds no call. Name the bundle that holds the work, or leave \
             the policy out where an empty bundle is right.",
        )
        .reason("no_call")
        .file(file)
        .expected(format!("{} {}", self.flag, self.value).trim_end())
        .found("0 records")
    }

    fn failure(&self, first: &Unmet, file: &std::path::Path) -> Failure {
        let (member, fact) = match self.test {
            Test::Tier(_) => ("isolation", "a call's tier is below the one required"),
            Test::Provider(_) => ("provider", "a call's provider is not one of those required"),
            Test::Software(_) => (
                "software_identity",
                "a call's software is not one of those required",
            ),
            Test::Environment => ("environment", "a call states no environment"),
            Test::MaxAge(_) => (
                "ended_unix_ms",
                "a call ended too long ago, or after the clock now",
            ),
            Test::NotBefore(_) => ("started_unix_ms", "a call started too early"),
            Test::NotAfter(_) => ("ended_unix_ms", "a call ended too late"),
            Test::Success => ("outcome", "a call was no success"),
        };
        let count = match self.unmet {
            1 => String::new(),
            more => format!(" ({more} calls do not meet it)"),
        };
        Failure::new(
            self.class,
            format!("{fact}{count}"),
            "The evidence verifies. Run the work again where it meets the policy, or decide \
             whether the policy is the right one.",
        )
        .file(file)
        .line(first.line)
        .member(format!("envelope.payload.predicate.{member}"))
        .expected(format!("{} {}", self.flag, self.value).trim_end())
        .found(&first.found)
    }
}

impl Test {
    /// What the call states instead; `None` when it meets the rule.
    fn unmet(&self, call: &Call<'_>) -> Option<String> {
        let record = &call.record;
        let (met, found) = match self {
            Test::Tier(floor) => (
                tier::meets(&record.isolation, floor),
                record.isolation.clone(),
            ),
            Test::Provider(names) => (names.contains(&record.provider), record.provider.clone()),
            Test::Software(ids) => (
                !record.software_identity.is_empty() && ids.contains(&record.software_identity),
                record.software_identity.clone(),
            ),
            Test::Environment => (!record.environment.is_empty(), String::new()),
            Test::MaxAge(age) => {
                let now = now_unix_ms();
                (
                    (now.saturating_sub(*age)..=now).contains(&record.ended_unix_ms),
                    record.ended_unix_ms.to_string(),
                )
            }
            Test::NotBefore(at) => (
                record.started_unix_ms >= *at,
                record.started_unix_ms.to_string(),
            ),
            Test::NotAfter(at) => (
                record.ended_unix_ms <= *at,
                record.ended_unix_ms.to_string(),
            ),
            Test::Success => match &call.response {
                Some(response) => (
                    is_success(&call.request, response),
                    plimsoll_record::outcome::summary(response),
                ),
                None => (false, format!("unanswered {}", record.unanswered)),
            },
        };
        (!met).then_some(found)
    }
}

fn now_unix_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or_default()
}
