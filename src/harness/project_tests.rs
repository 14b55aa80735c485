use std::{fs, os::unix::fs::symlink};

use super::*;

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn all() -> Selection {
    Selection::default()
}

fn paths(collected: &Collected) -> Vec<&str> {
    collected.files.iter().map(|f| f.path.as_str()).collect()
}

#[test]
fn sorted_by_bytes_without_git() {
    let folder = folder(&[
        ("b", b"1"),
        ("a/x", b"2"),
        ("a.txt", b"3"),
        ("a/.git/config", b"no"),
        (".git/HEAD", b"no"),
        ("c/.git", b"a file of that name is a file"),
        ("-rf", b""),
        ("\u{e9}", b"4"),
        ("A", b"5"),
        (".hidden", b"6"),
    ]);
    let collected = collect(folder.path(), &all()).unwrap();
    assert_eq!(
        paths(&collected),
        [
            "-rf", ".hidden", "A", "a.txt", "a/x", "b", "c/.git", "\u{e9}"
        ]
    );
    assert!(collected.left_out.is_empty());
}

#[test]
fn links_and_fifos_are_left_out_by_name() {
    let folder = folder(&[("a", b"1")]);
    symlink("/etc/passwd", folder.path().join("passwd")).unwrap();
    symlink("/etc", folder.path().join("etc")).unwrap();
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(folder.path().join("sock")).unwrap();
    let collected = collect(folder.path(), &all()).unwrap();
    drop(socket);
    assert_eq!(paths(&collected), ["a"]);
    let left_out: Vec<_> = (collected.left_out.iter())
        .map(|l| (l.path.to_str().unwrap(), l.what))
        .collect();
    assert_eq!(
        left_out,
        [
            ("etc", What::Link),
            ("fifo", What::Fifo),
            ("passwd", What::Link),
            ("sock", What::Socket)
        ]
    );
}

#[test]
fn patterns() {
    let folder = folder(&[
        ("a.o", b""),
        ("src/a.o", b""),
        ("src/a.c", b""),
        ("node_modules/x/y.js", b""),
        ("deep/node_modules/z.js", b""),
    ]);
    let kept = |patterns: &[&str]| {
        let selection = Selection::new(patterns, false).unwrap();
        let collected = collect(folder.path(), &selection).unwrap();
        paths(&collected)
            .iter()
            .map(|&p| p.to_owned())
            .collect::<Vec<_>>()
    };
    let everything = [
        "a.o",
        "deep/node_modules/z.js",
        "node_modules/x/y.js",
        "src/a.c",
        "src/a.o",
    ];
    assert_eq!(kept(&[]), everything);
    assert_eq!(
        kept(&["*.o", "node_modules"]),
        ["deep/node_modules/z.js", "src/a.c", "src/a.o"]
    );
    assert_eq!(kept(&["**/*.o", "**/node_modules/**"]), ["src/a.c"]);
    assert!(Selection::new(&["a[".to_owned()], false).is_err());
    assert!(matches!(
        Selection::new(&vec!["a"; MAX_PATTERNS + 1], false),
        Err(PatternError::TooMany)
    ));
}

#[test]
fn binary_files() {
    let folder = folder(&[("a", b"text"), ("b", b"\xff\xfe")]);
    let refused = collect(folder.path(), &all());
    assert!(matches!(refused, Err(ProjectError::Binary { path }) if path == Path::new("b")));
    let selection = Selection::new::<&str>(&[], true).unwrap();
    let collected = collect(folder.path(), &selection).unwrap();
    assert_eq!(paths(&collected), ["a"]);
    assert_eq!(collected.left_out[0].what, What::Binary);
}

#[test]
fn limits_name_the_largest() {
    let names: Vec<String> = (0..201).map(|i| format!("f{i:03}")).collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|n| (n.as_str(), b"x".as_slice()))
        .collect();
    assert_eq!(
        collect(folder(&files[..200]).path(), &all())
            .unwrap()
            .files
            .len(),
        200
    );
    let error = collect(folder(&files).path(), &all()).unwrap_err();
    assert!(matches!(
        error,
        ProjectError::Large {
            files: 201,
            bytes: 201,
            ..
        }
    ));
    let half = vec![b'x'; MAX_FILES_BYTES / 2];
    let files = [("a", half.as_slice()), ("b", half.as_slice()), ("c", b"!")];
    assert!(collect(folder(&files[..2]).path(), &all()).is_ok());
    match collect(folder(&files).path(), &all()).unwrap_err() {
        ProjectError::Large { largest, bytes, .. } => {
            assert_eq!(bytes, MAX_FILES_BYTES as u64 + 1);
            assert_eq!(largest.len(), 3);
            assert_eq!(largest[2].path, Path::new("c"));
        }
        other => panic!("{other}"),
    }
    let huge = vec![b'x'; MAX_FILES_BYTES + 2];
    let error = collect(folder(&[("a", &huge)]).path(), &all()).unwrap_err();
    assert!(matches!(error, ProjectError::Large { bytes, .. } if bytes == huge.len() as u64));
}

#[test]
fn paths_the_wire_refuses() {
    for name in ["a\nb", "a\\b", "a\u{85}"] {
        let folder = folder(&[(name, b"")]);
        let error = collect(folder.path(), &all()).unwrap_err();
        let unsafe_path = matches!(
            &error,
            ProjectError::Path {
                fault: Some(PathFault::Unsafe),
                ..
            }
        );
        assert!(unsafe_path, "{name:?}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(OsStr::from_bytes(b"\xff")), "").unwrap();
    let error = collect(folder.path(), &all()).unwrap_err();
    assert!(matches!(error, ProjectError::Path { fault: None, .. }));
}

#[test]
fn the_folder_itself() {
    let folder = folder(&[("a", b"1")]);
    let link = folder.path().join("..").join(format!(
        "{}-link",
        folder.path().file_name().unwrap().to_str().unwrap()
    ));
    symlink(folder.path(), &link).unwrap();
    assert_eq!(collect(&link, &all()).unwrap().files.len(), 1);
    fs::remove_file(&link).unwrap();
    for bad in [folder.path().join("a"), folder.path().join("none")] {
        let error = collect(&bad, &all()).unwrap_err();
        assert!(matches!(error, ProjectError::Io { .. }), "{error}");
    }
}
