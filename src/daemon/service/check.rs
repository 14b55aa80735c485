//! The checks before admission, in their order.
//!
//! The order is a security property: nothing expensive happens before the
//! cheap checks, and no check that could hide another's reason runs early.

use std::time::Duration;

use plimsoll_wire::{Code, Kind, Reason, Refusal, Rule, Tier, proto::RunRequest, validate};

use crate::{
    call::Principal,
    provider::{Provider, TierNow, tier_name},
};

/// What the checks made of a request.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) floor: Option<Tier>,
    pub(super) rule: Rule,
    pub(super) timeout: Option<Duration>,
}

/// Everything that is checked of a single run before it is admitted.
pub(super) fn single_run(
    request: &RunRequest,
    principal: &Principal,
    provider: &dyn Provider,
) -> Result<Checked, Refusal> {
    validate::protocol(request.protocol)?;
    let floor = validate::floor(&request.minimum_isolation)?;
    let rule = Rule::parse(request.software_rule.as_option())?;
    let timeout = validate::timeout(request.timeout_ms);
    let payload = request.payload.as_ref();
    validate::payload(payload)?;
    let profile = validate::grant_of(payload);
    validate::grant_profile(profile)?;
    grant(profile, principal)?;
    meets_floor(provider.tier(), floor)?;
    if let Some(kind) = Kind::of_request(request) {
        allowed(&rule, &provider.environment(kind).software_identity)?;
    }
    Ok(Checked {
        floor,
        rule,
        timeout,
    })
}

/// Resolves a grant profile. There are none yet, so any name is unknown; an
/// unknown name, a name that is not the caller's and a caller without an
/// identity are answered alike, so that names cannot be guessed.
fn grant(profile: &str, _: &Principal) -> Result<(), Refusal> {
    if profile.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        Code::PermissionDenied,
        Reason::Permission,
        format!("grant_profile {profile:?} is not available to this caller"),
    ))
}

/// Whether the tier proven now is at least the floor.
pub(crate) fn meets_floor(tier: TierNow, floor: Option<Tier>) -> Result<(), Refusal> {
    match floor {
        Some(floor) if tier.is_none_or(|tier| tier < floor) => Err(Refusal::new(
            Code::FailedPrecondition,
            Reason::Isolation,
            format!(
                "the request asks for isolation {floor} and this daemon provides {}",
                tier_name(tier)
            ),
        )),
        _ => Ok(()),
    }
}

/// Whether the rule allows the software the provider states.
fn allowed(rule: &Rule, identity: &str) -> Result<(), Refusal> {
    if rule.allows(identity) {
        return Ok(());
    }
    let fault = if identity.is_empty() {
        "this daemon states no software identity for this kind of run, so no software rule is met"
    } else {
        "the software this daemon runs is not in the software rule"
    };
    Err(Refusal::new(
        Code::FailedPrecondition,
        Reason::Environment,
        fault,
    ))
}
