//! The configuration reference, made from the declared variables.

use super::{
    providers::Choice,
    variable::{Group, VARIABLES, Variable},
};

const HEAD: &str = "\
Usage: plimsoll-attest daemon

Runs untrusted code in a sandbox and answers every run with a record.
It takes no arguments; settings are environment variables.

Exit status: 0 clean stop, 2 a setting is refused, 4 the environment is not
ready (address, provider, isolation), 70 internal fault.

RPC on PLIMSOLL_ADDR, with /healthz and /readyz. Logs go to standard error.
";

/// Providers in the order of their sections.
const PROVIDERS: [&str; 5] = ["docker", "e2b", "dockercloud", "openshell", "agentsandbox"];

/// The whole reference.
#[must_use]
pub fn help() -> String {
    let mut text = String::from(HEAD);
    section(&mut text, "Daemon", Group::Daemon);
    section(
        &mut text,
        "Provider and the envelope of one run",
        Group::Envelope,
    );
    text.push_str(&format!(
        "\nProviders of this build for SANDBOX_PROVIDER: {}.\n",
        Choice::built_names()
    ));
    text.push_str(
        "  wasm runs snippets inside this process, tier process, and bounds memory only.\n",
    );
    for provider in PROVIDERS {
        let built = if Choice::is_built(provider) {
            ""
        } else {
            ", not in this build"
        };
        let title = format!("Provider {provider}{built}");
        section(&mut text, &title, Group::Provider(provider));
    }
    section(&mut text, "Limits", Group::Limits);
    section(&mut text, "Sessions", Group::Sessions);
    section(&mut text, "Not in this build yet", Group::Later);
    text
}

fn section(text: &mut String, title: &str, group: Group) {
    text.push_str(&format!("\n{title}\n"));
    for variable in VARIABLES.iter().filter(|v| v.group == group) {
        entry(text, variable);
    }
}

fn entry(text: &mut String, variable: &Variable) {
    text.push_str(&format!("  {}", variable.name));
    if !variable.default.is_empty() {
        text.push_str(&format!("  ({})", variable.default));
    }
    text.push_str(&format!("\n      {}\n", variable.help));
}
