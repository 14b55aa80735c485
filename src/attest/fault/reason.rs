//! The reasons of refusals, one enum for each class.
//!
//! Every reason has a stable word for scripts and tests, and a sentence that
//! states the fact without its place or its data.

/// Declares a reason enum from one table, so that word and sentence cannot drift apart.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $word:literal $text:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum $name { $(#[doc = $text] $variant,)+ }

        impl $name {
            /// Every reason of the class, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable word.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The fact as a sentence without a full stop.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

reasons! {
    /// Why a line is not in its exact form.
    LineReason {
        Base64 "base64" "a value is not canonical base64";
        Blank "blank" "the line is blank";
        ByteOrderMark "byte_order_mark" "the line starts with a byte-order mark";
        CarriageReturn "carriage_return" "the line ends with a carriage return";
        ControlCharacter "control_character" "a control character stands in a string";
        EmptyMember "empty_member" "a member that would be left out is written";
        MemberOrder "member_order" "the members are in another order";
        MissingMember "missing_member" "an envelope lacks a member";
        NoNewline "no_newline" "the last line has no newline";
        NotExact "not_exact" "the line is not written as the encoder writes it";
        NotUtf8 "not_utf8" "the line is not UTF-8";
        Replaced "replaced" "the file was cut or replaced while it was read";
        RepeatedMember "repeated_member" "a member is repeated";
        Space "space" "white space stands outside a string";
        Syntax "syntax" "the line is not a JSON object";
        TooDeep "too_deep" "values nest too deep";
        TooLong "too_long" "the line is over 64 MiB";
        TrailingData "trailing_data" "data follows the line's object";
        UnknownMember "unknown_member" "a member is unknown";
        UrlSafe "url_safe" "a value uses the URL-safe base64 alphabet";
        WrongType "wrong_type" "a member has another type";
    }
}

reasons! {
    /// Why a line's link does not hold it in its place.
    LinkReason {
        CheckpointEntry "checkpoint_entry" "a checkpoint states the digest of an entry";
        CheckpointLines "checkpoint_lines" "a checkpoint states another number of lines";
        CheckpointNotAlone "checkpoint_not_alone" "a checkpoint is not alone on its line";
        Content "content" "the line's content is not what its link signs";
        Index "index" "the link names another position";
        LinesOnEntry "lines_on_entry" "an entry's link states a number of lines";
        Missing "missing" "the line has no link";
        Previous "previous" "the link does not follow the line before";
        PreviousForm "previous_form" "the link's previous digest has the wrong form";
    }
}

reasons! {
    /// Why no signature counts.
    SignatureReason {
        EncodedTwice "encoded_twice" "the signature was base64-encoded twice";
        Encoding "encoding" "the signature is not canonical base64 of 64 bytes";
        Mismatch "mismatch" "the signature does not verify";
        None "none" "the envelope carries no signature";
        OtherKey "other_key" "the envelope is signed by another key";
        TooMany "too_many" "the envelope carries too many signatures";
        UrlSafe "url_safe" "the signature uses the URL-safe base64 alphabet";
    }
}

reasons! {
    /// Why a signed statement is not of its form.
    StatementReason {
        EmptyKeyId "empty_key_id" "a link's signature names no key";
        Json "json" "the payload is not strict JSON";
        ManySignatures "many_signatures" "the envelope carries more than one signature";
        NotInteger "not_integer" "a number is not a plain integer in range";
        Parse "parse" "the text is not a strict JSON object";
        PayloadBase64 "payload_base64" "the payload is not canonical base64";
        PayloadType "payload_type" "the payload type is another";
        PayloadUrlSafe "payload_url_safe" "the payload uses the URL-safe base64 alphabet";
        PredicateType "predicate_type" "the predicate type is another";
        RecordDigest "record_digest" "the record's digest is not that of its fields";
        RepeatedMember "repeated_member" "a member is repeated";
        Session "session" "the session is not a fingerprint";
        Shape "shape" "the statement has not the members of one";
        SoftwareOnOld "software_on_old" "a version 1 record states software";
        StatementType "statement_type" "the statement type is another";
        Subject "subject" "a subject is not valid";
        SubjectAbsent "subject_absent" "no subject has the digest asked for";
        SubjectCount "subject_count" "the statement has not exactly one subject";
        SubjectDigest "subject_digest" "the subject's digest is another";
        SubjectName "subject_name" "the subject's name is another";
        TooDeep "too_deep" "values nest too deep";
        TooLarge "too_large" "the statement is over 16 MiB";
        TrailingData "trailing_data" "data follows the statement";
        Type "type" "the predicate type is not an absolute URI of 1 to 2048 characters";
        Unanswered "unanswered" "the status code does not fit the record's version";
        UnknownMember "unknown_member" "a member is unknown";
        Version "version" "the record version is unknown";
        WrongType "wrong_type" "a member has another type";
    }
}

reasons! {
    /// Why stored messages do not belong to their record.
    StoredReason {
        CloseWithMessages "close_with_messages" "a session close stores a message";
        Isolation "isolation" "the record's tier does not meet the request's floor";
        Mismatch "mismatch" "the record is not that of the stored messages";
        NoRecord "no_record" "the stored response carries no record";
        OldRecord "old_record" "a version 1 record stands in a bundle";
        RecordDiffers "record_differs" "the stored response's record is not the signed one";
        RequestDecode "request_decode" "the stored request does not decode";
        RequestMissing "request_missing" "the call stores no request";
        ResponseDecode "response_decode" "the stored response does not decode";
        ResponseMissing "response_missing" "the answered call stores no response";
        ResponseOnUnanswered "response_on_unanswered" "an unanswered call stores a response";
        ResultKind "result_kind" "the stored result is of another kind than the request";
        Version "version" "the record version is not allowed here";
    }
}

reasons! {
    /// Why a session's chain is broken.
    ChainReason {
        Calls "calls" "the session close states another number of calls";
        Closed "closed" "a call stands after its session's close";
        Empty "empty" "the close of a session without calls here states some";
        Last "last" "the session close states another last record";
        NotClosed "not_closed" "a session has no close";
        Previous "previous" "the record does not follow the session's last one";
        SecondClose "second_close" "the session is closed twice";
        Sequence "sequence" "the record is not the session's next call";
        Session "session" "the record's session is not a fingerprint";
        SingleRun "single_run" "a single run has a place in a chain";
        Unanswered "unanswered" "an unanswered call belongs to no session";
    }
}

reasons! {
    /// Why a bundle is not whole.
    IncompleteReason {
        Empty "empty" "the bundle has no lines";
        NoCheckpoint "no_checkpoint" "the bundle does not end in a checkpoint";
    }
}

reasons! {
    /// Why an expectation is not met.
    ExpectedReason {
        Count "count" "the number of calls is another";
        NotADigest "not_a_digest" "an expected request is not a hex digest";
        Requests "requests" "the requests are not those expected";
    }
}

reasons! {
    /// Why a line named by its number is no call.
    NotACallReason {
        Checkpoint "checkpoint" "the line is a checkpoint";
        Close "close" "the line is a session close";
    }
}

reasons! {
    /// Where a reserved type was found.
    ReservedReason {
        Asked "asked" "the type asked for is reserved";
        Payload "payload" "the statement's type is reserved";
    }
}

reasons! {
    /// Why a checked exchange cannot be signed or written.
    SealReason {
        Chain "chain" "the record's place in its session is not well-formed";
        Close "close" "the close is not that of the session's chain";
        Poisoned "poisoned" "an earlier write failed; nothing more is written";
        Record "record" "the record does not check";
        TooLong "too_long" "the line would be over 64 MiB";
        Version "version" "a record of this version is not signed";
        Write "write" "writing failed";
    }
}

reasons! {
    /// Why a bundle does not meet an anchor.
    AnchorReason {
        Behind "behind" "the bundle was cut back: the anchor saw more lines";
        Differs "differs" "the line the anchor saw is another, or no checkpoint";
        Format "format" "the anchor is not in its exact form";
        Origin "origin" "the anchor is that of another bundle";
        Signature "signature" "the anchor is not signed by an accepted key";
    }
}
