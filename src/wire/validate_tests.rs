use super::*;
use crate::proto::ModuleRow;

fn project_with(files: Vec<(&str, String)>) -> ProjectRun {
    ProjectRun {
        steps: vec!["true".into()],
        files: files
            .into_iter()
            .map(|(path, content)| ProjectFile {
                path: path.into(),
                content,
            })
            .collect(),
        ..Default::default()
    }
}

fn table(rows: &[&[f64]], end_time: f64, step: f64) -> ModuleRun {
    ModuleRun {
        model: "m".into(),
        rows: rows
            .iter()
            .map(|values| ModuleRow {
                values: values.to_vec(),
            })
            .collect(),
        end_time,
        step,
    }
}

#[test]
fn protocol_numbers() {
    assert!(protocol(3).is_ok());
    for (number, code) in [
        (0, Code::InvalidArgument),
        (1, Code::Unimplemented),
        (2, Code::Unimplemented),
        (4, Code::Unimplemented),
    ] {
        let refusal = protocol(number).unwrap_err();
        assert_eq!((refusal.code, refusal.reason), (code, Reason::Protocol));
    }
}

#[test]
fn floors_are_exact() {
    assert_eq!(floor(""), Ok(None));
    assert_eq!(floor("vm"), Ok(Some(Tier::Vm)));
    for bad in ["none", "VM", "kernel ", "unknown"] {
        assert!(floor(bad).is_err(), "{bad}");
    }
}

#[test]
fn timeouts_are_cut_never_refused() {
    assert_eq!(timeout(0), None);
    assert_eq!(timeout(-1), None);
    assert_eq!(timeout(1500), Some(Duration::from_millis(1500)));
    for ms in [300_000, 400_000, i32::MAX] {
        assert_eq!(timeout(ms), Some(Duration::from_secs(300)));
    }
}

#[test]
fn code_at_its_edges() {
    let check = |code: String| {
        javascript(&JavaScriptRun {
            code,
            ..Default::default()
        })
    };
    assert!(check("x".repeat(MAX_CODE_BYTES)).is_ok());
    assert!(check("x".repeat(MAX_CODE_BYTES + 1)).is_err());
    // The last character straddles the limit.
    assert!(check("x".repeat(MAX_CODE_BYTES - 1) + "é").is_err());
    assert!(check(String::new()).is_err());
    assert!(check("a\0b".into()).is_err());
}

#[test]
fn paths() {
    for good in [
        "a", "a/b.c", "-rf", "a b", "é", "e\u{301}", "A", "...", "a/..b",
    ] {
        assert_eq!(path(good), Ok(()), "{good}");
    }
    for bad in [
        "", "..", "a/../b", "/a", "a/", "a//b", "./a", ".", "a\\b", "a\u{85}", "a\0", "a\nb",
        "\u{7f}",
    ] {
        assert_eq!(path(bad), Err(PathFault::Unsafe), "{bad:?}");
    }
    assert_eq!(path(&"a".repeat(1024)), Ok(()));
    assert_eq!(path(&"a".repeat(1025)), Err(PathFault::TooLong));
}

#[test]
fn projects_at_their_edges() {
    let mut run = project_with(vec![]);
    assert!(project(&run).is_ok());
    run.steps = vec![String::new(); MAX_STEPS];
    assert!(project(&run).is_ok());
    run.steps.push(String::new());
    assert!(project(&run).is_err());
    run.steps = vec!["x".repeat(MAX_STEP_BYTES)];
    assert!(project(&run).is_ok());
    run.steps = vec!["x".repeat(MAX_STEP_BYTES + 1)];
    assert_eq!(project(&run).unwrap_err().member, "project.steps[0]");
    run.steps = vec![];
    assert!(project(&run).is_err());

    let half = "x".repeat(MAX_FILES_BYTES / 2);
    assert!(
        project(&project_with(vec![
            ("a", half.clone()),
            ("b", half.clone())
        ]))
        .is_ok()
    );
    let over = project(&project_with(vec![("a", half.clone()), ("b", half + "y")]));
    assert_eq!(over.unwrap_err().member, "project.files[1].content");
    let twice = project_with(vec![("a", String::new()), ("a", String::new())]);
    assert_eq!(project(&twice).unwrap_err().member, "project.files[1].path");
    assert!(
        project(&project_with(vec![
            ("a", String::new()),
            ("A", "\0".into())
        ]))
        .is_ok()
    );

    let mut run = project_with(vec![]);
    run.artifacts = (0..MAX_ARTIFACTS).map(|i| format!("a{i}")).collect();
    assert!(project(&run).is_ok());
    run.artifacts[1] = "a0".into();
    assert_eq!(project(&run).unwrap_err().member, "project.artifacts[1]");
    run.artifacts = (0..=MAX_ARTIFACTS).map(|i| format!("a{i}")).collect();
    assert!(project(&run).is_err());
}

#[test]
fn messages_quote_and_cut_what_they_name() {
    let refusal = project(&project_with(vec![("../\u{1b}[31mx", String::new())])).unwrap_err();
    assert_eq!(refusal.message, "unsafe file path \"../\\u{1b}[31mx\"");
    let long = format!("{}/", "x".repeat(900));
    let refusal = project(&project_with(vec![(&long, String::new())])).unwrap_err();
    assert!(refusal.message.len() < 160, "{}", refusal.message);
}

#[test]
fn module_tables() {
    assert!(module(&table(&[&[1.0, -0.0]], 2.0, 1.0)).is_ok());
    let wide = [1.0; MAX_ROW_VALUES + 1];
    for bad in [
        table(&[], 1.0, 1.0),
        table(&[&[]], 1.0, 1.0),
        table(&[&[1.0], &[1.0, 2.0]], 1.0, 1.0),
        table(&[&[f64::NAN]], 1.0, 1.0),
        table(&[&[f64::INFINITY]], 1.0, 1.0),
        table(&[&wide], 1.0, 1.0),
        table(&[&[1.0]], f64::NAN, 1.0),
        table(&[&[1.0]], 1.0, f64::NAN),
        table(&[&[1.0]], 0.0, 1.0),
        table(&[&[1.0]], f64::INFINITY, 1.0),
        table(&[&[1.0]], 1.0, -1.0),
        table(&[&[1.0]], 2_000_000.0, 1.0),
        table(&[&[1.0]], f64::MAX, f64::MIN_POSITIVE),
    ] {
        assert!(module(&bad).is_err(), "{bad:?}");
    }
    // One row of a million steps passes the step bound and fits; two do not fit.
    assert!(module(&table(&[&[1.0]], 1_000_000.0, 1.0)).is_ok());
    assert_eq!(
        module(&table(&[&[1.0], &[1.0]], 1_000_000.0, 1.0))
            .unwrap_err()
            .member,
        "module"
    );
    assert!(module(&table(&[&wide[..MAX_ROW_VALUES]], 1.0, 1.0)).is_ok());
    let mut named = table(&[&[1.0]], 1.0, 1.0);
    for (name, good) in [
        ("a", true),
        ("A.b_c-9", true),
        ("", false),
        (".a", false),
        ("a/b", false),
    ] {
        named.model = name.into();
        assert_eq!(module(&named).is_ok(), good, "{name}");
    }
    named.model = "m".repeat(65);
    assert!(module(&named).is_err());
}

#[test]
fn names() {
    assert!(is_trace_id("job-7.attempt:1"));
    assert!(is_trace_id(&"a".repeat(64)));
    for bad in ["", "/v1/users/42", "a\nb", "a b", "é"] {
        assert!(!is_trace_id(bad), "{bad}");
    }
    assert!(!is_owner(&"a".repeat(65)));
    assert!(grant_profile(&"g".repeat(128)).is_ok());
    assert!(grant_profile(&"g".repeat(129)).is_err());
}

#[test]
fn a_single_run_needs_a_payload_that_is_no_cell() {
    let mut request = RunRequest::default();
    assert!(single_run(&request).is_err());
    request.payload = Some(CellRun::default().into());
    assert_eq!(single_run(&request).unwrap_err().member, "cell");
    request.payload = Some(
        JavaScriptRun {
            code: "1".into(),
            ..Default::default()
        }
        .into(),
    );
    assert!(single_run(&request).is_ok());
    request.trace_id = "a/b".into();
    assert_eq!(single_run(&request).unwrap_err().member, "traceId");
}
