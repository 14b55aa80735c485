use std::{
    os::unix::fs::PermissionsExt,
    sync::{Arc, Barrier},
    thread,
};

use super::*;

fn home() -> (tempfile::TempDir, Locations) {
    let folder = tempfile::tempdir().unwrap();
    let locations = Locations {
        config: None,
        home: Some(folder.path().as_os_str().to_owned()),
    };
    (folder, locations)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn places() {
    let place = |config: Option<&str>, home: Option<&str>| {
        Locations {
            config: config.map(Into::into),
            home: home.map(Into::into),
        }
        .key()
    };
    let at = |text: &str| Some(PathBuf::from(text));
    assert_eq!(place(Some("/x"), Some("/h")), at("/x/plimsoll/attest.key"));
    assert_eq!(
        place(Some("x"), Some("/h")),
        at("/h/.config/plimsoll/attest.key")
    );
    assert_eq!(
        place(Some(""), Some("/h")),
        at("/h/.config/plimsoll/attest.key")
    );
    assert_eq!(place(None, Some("h")), None);
    assert_eq!(place(None, None), None);
    let nowhere = load(None, None, &Locations::default(), true);
    assert!(matches!(nowhere, Err(KeyError::NoPlace)));
}

#[test]
fn made_on_first_use() {
    let (_folder, locations) = home();
    let (path, public) = (locations.key().unwrap(), locations.public().unwrap());
    assert!(matches!(
        load(None, None, &locations, false),
        Err(KeyError::Absent { .. })
    ));
    assert!(!path.exists());
    let first = load(None, None, &locations, true).unwrap();
    let created = Created {
        key: path.clone(),
        public: public.clone(),
    };
    assert_eq!(first.created, Some(created));
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&public) & 0o600, 0o600);
    assert_eq!(
        fs::read_to_string(&public).unwrap(),
        first.key.public().to_pem()
    );
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        2,
        "no temporary file is left"
    );
    let again = load(None, Some("".into()), &locations, true).unwrap();
    assert_eq!(again.created, None);
    assert_eq!(again.key.public().id(), first.key.public().id());
    // A public half lost to a crash comes back.
    fs::remove_file(&public).unwrap();
    load(None, None, &locations, true).unwrap();
    assert_eq!(
        fs::read_to_string(&public).unwrap(),
        first.key.public().to_pem()
    );
}

#[test]
fn two_first_uses_share_one_key() {
    for _ in 0..20 {
        let (_folder, locations) = home();
        let barrier = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (locations, barrier) = (locations.clone(), Arc::clone(&barrier));
                thread::spawn(move || {
                    barrier.wait();
                    let loaded = load(None, None, &locations, true).unwrap();
                    (
                        loaded.key.public().id().to_owned(),
                        loaded.created.is_some(),
                    )
                })
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(results.iter().all(|(id, _)| *id == results[0].0));
        assert_eq!(results.iter().filter(|(_, created)| *created).count(), 1);
        let public = fs::read(locations.public().unwrap()).unwrap();
        let public = plimsoll_attestation::PublicKey::from_pem(&public).unwrap();
        assert_eq!(public.id(), results[0].0);
    }
}

#[test]
fn files_and_variable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    let key = SigningKey::generate().unwrap();
    let write = |text: &str, mode: u32| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let locations = Locations::default();
    let load_file = || load(Some(&path), Some("ignored".into()), &locations, true);
    write(&key.to_pem(), 0o600);
    assert_eq!(load_file().unwrap().key.public().id(), key.public().id());
    for bits in [0o644, 0o640, 0o604, 0o610, 0o601, 0o666] {
        write(&key.to_pem(), bits);
        let refused = load_file();
        assert!(matches!(refused, Err(KeyError::Permissions { mode, .. }) if mode == bits));
    }
    for (text, fault) in [
        (key.public().to_pem(), KeyFault::PublicGiven),
        (String::new(), KeyFault::Empty),
        ("hello".into(), KeyFault::NoBlock),
    ] {
        write(&text, 0o600);
        let refused = load_file();
        assert!(
            matches!(&refused, Err(KeyError::Fault { fault: f, .. }) if *f == fault),
            "{refused:?}"
        );
    }
    write(&"x".repeat(MAX_KEY_BYTES + 1), 0o600);
    assert!(matches!(
        load_file(),
        Err(KeyError::Read {
            error: ReadError::TooLarge { .. },
            ..
        })
    ));
    let directory = load(Some(folder.path()), None, &locations, true);
    assert!(matches!(
        directory,
        Err(KeyError::Read {
            error: ReadError::Io(error),
            ..
        }) if error.kind() == io::ErrorKind::IsADirectory
    ));
    let variable = OsString::from(key.to_pem().as_str());
    let loaded = load(None, Some(variable), &locations, true).unwrap();
    assert_eq!(loaded.key.public().id(), key.public().id());
    let error = load(None, Some("canary-text".into()), &locations, true).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"));
}

#[test]
fn nothing_is_overwritten() {
    let (_folder, locations) = home();
    let public = locations.public().unwrap();
    fs::create_dir_all(public.parent().unwrap()).unwrap();
    fs::write(&public, "the only copy").unwrap();
    assert!(matches!(
        load(None, None, &locations, true),
        Err(KeyError::PublicExists { .. })
    ));
    assert_eq!(fs::read_to_string(&public).unwrap(), "the only copy");
    assert!(!locations.key().unwrap().exists());
    // HOME is a file.
    let (folder, _) = home();
    let file = folder.path().join("home");
    fs::write(&file, "").unwrap();
    let locations = Locations {
        config: None,
        home: Some(file.into_os_string()),
    };
    let refused = load(None, None, &locations, true).unwrap_err();
    assert!(
        matches!(refused, KeyError::Make { .. } | KeyError::Read { .. }),
        "{refused:?}"
    );
}
