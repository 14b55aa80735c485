//! Transcripts of the command line: what is typed, what is printed, the exit
//! code. After a wanted change, run with `TRYCMD=overwrite` and read the diff.

#[test]
fn evidence() {
    trycmd::TestCases::new().case("tests/transcripts/evidence-*.trycmd");
}

#[cfg(feature = "bom")]
#[test]
fn sbom() {
    trycmd::TestCases::new().case("tests/transcripts/sbom-*.trycmd");
}

#[cfg(feature = "clients")]
#[test]
fn clients() {
    trycmd::TestCases::new().case("tests/transcripts/clients-*.trycmd");
}

/// Help names every command, so these are those of a complete build.
#[cfg(all(feature = "bom", feature = "run", feature = "wasm"))]
#[test]
fn small_commands() {
    trycmd::TestCases::new().case("tests/transcripts/small-*.trycmd");
}

/// What `run` refuses before anything is sent. The key is the published one of
/// the vectors, so that none is made and none of the caller's is used.
#[cfg(all(feature = "run", feature = "wasm"))]
#[test]
fn run() {
    const KEY: &str = include_str!("../../../testdata/vectors/own-mixed.key");
    trycmd::TestCases::new()
        .env("PLIMSOLL_ATTEST_KEY", KEY)
        .case("tests/transcripts/run-*.trycmd");
}

/// What receipts are refused with. Nothing of a CI job's environment counts.
#[cfg(all(feature = "receipt", feature = "run"))]
#[test]
fn receipts() {
    trycmd::TestCases::new()
        .env("GITHUB_EVENT_NAME", "")
        .env("GITHUB_EVENT_PATH", "")
        .case("tests/transcripts/receipt-*.trycmd");
}
