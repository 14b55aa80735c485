//! The classes of refusals: stable words scripts may compare, each with the exit code it gives.

use std::fmt;

use crate::exit::ExitCode;

/// Declares [`Class`] from one table, so that word, exit code and meaning cannot drift apart.
macro_rules! classes {
    ($($variant:ident $word:literal $exit:ident $meaning:literal;)+) => {
        /// What kind of refusal an error is. A class may be added; none changes its meaning.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum Class {
            $(#[doc = $meaning] $variant,)+
        }

        impl Class {
            /// Every class, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable word, as in `error[chain]` and in the member `class`.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The exit code a failure of this class gives unless it says otherwise.
            #[must_use]
            pub const fn exit(self) -> ExitCode {
                match self { $(Self::$variant => ExitCode::$exit),+ }
            }

            /// What it means, for documentation.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }
        }
    };
}

classes! {
    Usage "usage" Usage "the command line is not valid";
    Config "config" Usage "a setting or a configuration file is not valid";
    Key "key" Usage "a key cannot be used";
    Io "io" Usage "an input cannot be read or an output cannot be written";
    Exists "exists" Usage "an output already exists";

    Line "line" Refused "a line is not in its exact form";
    Link "link" Refused "a line's link is missing or wrong";
    Signature "signature" Refused "no signature counts";
    Statement "statement" Refused "a signed statement is not of its form";
    Stored "stored" Refused "a stored message does not belong to its record";
    Chain "chain" Refused "a session's chain is broken";
    Incomplete "incomplete" Refused "the bundle does not end in a checkpoint";
    Empty "empty" Refused "the bundle verifies and holds no call";
    Expected "expected" Refused "an expectation about the calls is not met";
    Anchor "anchor" Refused "the anchor does not fit the bundle";
    NotACall "not_a_call" Refused "the line named holds no call";
    NoLine "no_line" Refused "the line named is not there";
    Reserved "reserved" Refused "a statement type that belongs to this system";
    Request "request" Refused "a request is not valid; nothing was sent";
    Bundle "bundle" Refused "the bundle must not be appended to";

    Registry "registry" Refused "the registry of callers is not valid, or a change to it is refused";

    PolicyTier "policy_tier" Negative "a call's tier is below the one required";
    PolicyProvider "policy_provider" Negative "a call's provider is not one of those required";
    PolicySoftware "policy_software" Negative "a call's software is not one of those required";
    PolicyEnvironment "policy_environment" Negative "a call states no environment";
    PolicyTime "policy_time" Negative "a call is outside the time asked for";
    PolicyOutcome "policy_outcome" Negative "a call was not a success";

    ManyRuns "many_runs" Refused "the selection holds more than one run";
    NoRuns "no_runs" Refused "the selection holds no run";
    SessionOpen "session_open" Refused "the session has no close";
    TooLarge "too_large" Refused "the selection is larger than the format allows";
    TimeRange "time_range" Refused "a time cannot be written in the format";
    BomParse "bom_parse" Refused "the BOM is not readable";
    BomNotCanonical "bom_not_canonical" Refused "the BOM is not in its canonical form";
    BomSchema "bom_schema" Refused "the BOM does not meet its schema";
    BomProfile "bom_profile" Refused "the BOM does not follow its profile";
    BomSerial "bom_serial" Refused "the BOM's serial number is not the one its content gives";
    KeyMismatch "key_mismatch" Refused "the BOM names another key";
    AttachmentMissing "attachment_missing" Refused "an attachment is not there";
    AttachmentHash "attachment_hash" Refused "an attachment has another digest";
    AttachmentEvidenceMismatch "attachment_evidence_mismatch" Refused
        "an attachment differs from the evidence";
    BomMismatch "bom_mismatch" Negative "the BOM rebuilt from good evidence differs";

    BindingMismatch "binding_mismatch" Refused "a digest in the receipt names something else";
    GitCommit "git_commit" Refused "the commit is not the one expected";
    GitTree "git_tree" Refused "the commit has another tree";
    FileMismatch "file_mismatch" Refused "a file sent differs from the commit's";
    FileUnexplained "file_unexplained" Refused "a file sent is not of the commit and not listed";
    FileMissing "file_missing" Refused "a file of the commit was not sent without a good reason";
    ReportMissing "report_missing" Refused "a test report is not there";
    ReportParse "report_parse" Refused "a test report cannot be read";
    ResultMismatch "result_mismatch" Refused "the stated result is not what the reports say";
    ConfigMismatch "config_mismatch" Refused "the steps are not those of the configuration";
    FloorNotMet "floor_not_met" Refused "the stated tier is below the floor";
    WorkflowChanged "workflow_changed" Refused "the workflow or configuration was changed";
    TestsFailed "tests_failed" Negative "tests failed";
    NoTests "no_tests" Negative "no test was run";

    NotDispatched "not_dispatched" Unavailable "the daemon refused before anything ran";
    Unreachable "unreachable" Unavailable "nothing could be sent";
    Environment "environment" Unavailable "the daemon could not start";
    MayHaveRun "may_have_run" Unrecorded "the code may have run and no answer came";
    Unchecked "unchecked" Unrecorded "an answer came and does not check";
    NotKept "not_kept" Unrecorded "it ran and its record could not be kept";
    Different "different" Negative "the replay gave something else";
    NotSuccess "not_success" Negative "the outcome is not a success";
    Internal "internal" Internal "a fault of this program";
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_plain() {
        let mut seen = std::collections::BTreeSet::new();
        for class in Class::ALL {
            assert!(
                class
                    .word()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_')
            );
            assert!(seen.insert(class.word()), "{class} stands twice");
            assert!(!class.exit().is_ok(), "{class} is a failure");
        }
    }

    #[test]
    fn exit_codes_follow_the_published_table() {
        let code = |class: Class| class.exit().code();
        assert_eq!(code(Class::Io), 2);
        assert_eq!(code(Class::Chain), 1);
        assert_eq!(code(Class::PolicyTime), 5);
        assert_eq!(code(Class::BomMismatch), 5);
        assert_eq!(code(Class::NoTests), 5);
        assert_eq!(code(Class::Unreachable), 4);
        assert_eq!(code(Class::NotKept), 3);
        assert_eq!(code(Class::Internal), 70);
    }
}
