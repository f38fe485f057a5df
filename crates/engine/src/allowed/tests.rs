#![allow(clippy::unwrap_used)]
use super::*;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

/// A directory in which a file of what is allowed is looked for.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        self.mode("config/file", 0o600);
        file
    }

    fn mode(&self, name: &str, mode: u32) {
        let _ = std::fs::set_permissions(self.path(name), Permissions::from_mode(mode));
    }

    /// What the file allows for a root; the error's text otherwise.
    fn allowed(&self, root: &str) -> Result<Allowed, String> {
        let source = Source::of_this_user(self.path("config/file"));
        let mut allowed = Allowed::default();
        let content = source.read(Some(Path::new(root)));
        for (key, entry) in content.map_err(|error| error.to_string())?.entries() {
            if key.covers(Path::new(root)) {
                allowed.add(entry);
            }
        }
        Ok(allowed)
    }

    fn refused(&self) -> String {
        self.allowed("/srv/shop").unwrap_err()
    }
}

const SHOP: &str = "[project.\"/srv/shop\"]\nservices = [\"127.0.0.1:9000\"]\n";

#[test]
fn entries_of_a_root_and_of_prefixes_add_up() {
    let home = Home::new();
    home.write(
        "config/file",
        r#"
        [project."/srv/shop"]
        services = ["127.0.0.1:9000", "/run/mysqld/mysqld.sock"]
        env = ["STRIPE_KEY"]
        max_timeout_ms = 120000
        [project."/srv/"]
        services = ["127.0.0.1:9000", "db:3306"]
        read = ["/srv/packages/auth"]
        max_timeout_ms = 90000
        max_memory_mb = 1024
        [project."/srv/sh"]
        env = ["OF_ANOTHER"]
        [project."/srv/shop/sub"]
        env = ["OF_ANOTHER"]
        "#,
    );
    let shop = home.allowed("/srv/shop").unwrap();
    let mut services = shop.services.clone();
    services.sort();
    assert_eq!(
        services,
        ["/run/mysqld/mysqld.sock", "127.0.0.1:9000", "db:3306"]
    );
    assert_eq!(shop.env, ["STRIPE_KEY"]);
    assert_eq!(shop.read, [PathBuf::from("/srv/packages/auth")]);
    assert_eq!(shop.max_timeout_ms, Some(120_000));
    assert_eq!(shop.max_memory_mb, Some(1024));
    let below = home.allowed("/srv/shop/lib").unwrap();
    assert_eq!(below.services, ["127.0.0.1:9000", "db:3306"]);
    assert_eq!(
        home.allowed("/srv").unwrap().services,
        ["127.0.0.1:9000", "db:3306"]
    );
    assert_eq!(home.allowed("/srvs").unwrap(), Allowed::default());
}

#[test]
fn no_file_allows_nothing() {
    let home = Home::new();
    assert_eq!(home.allowed("/srv/shop").unwrap(), Allowed::default());
    home.write("config", "");
    assert_eq!(home.allowed("/srv/shop").unwrap(), Allowed::default());
}

#[test]
fn a_mistake_is_told_with_its_file_and_line() {
    let cases = [
        ("[project.\"/srv/shop\"]\nservice = []", 2, "service"),
        ("[projects]", 1, "projects"),
        ("[project.\"/a\"]\n\nservices = [\n\"shop\"]", 3, "port"),
        ("[project.\"/a\"]\nservices = [\"db:70000\"]", 2, "65535"),
        ("[project.\"/a\"]\nenv = [\"A\", \"B-C\"]", 2, "B-C"),
        ("[project.\"/a\"]\nread = [\"packages\"]", 2, "not absolute"),
        ("[project.\"/a\"]\nread = [\"/a/../b\"]", 2, "`..`"),
        ("[project.\"/a\"]\nmax_timeout_ms = 600001", 2, "600000"),
        ("[project.\"/a\"]\nmax_timeout_ms = 50", 2, "60000"),
        ("[project.\"/a\"]\nmax_memory_mb = 5000", 2, "4096"),
        ("[project.\"/a\"]\nmax_memory_mb = -1", 2, "-1"),
        ("[project.shop]", 1, "not absolute"),
        ("[project.\"/a/../b\"]", 1, "`..`"),
        ("\n\nnonsense", 3, "="),
        ("[project.\"/a\"]\n[project.\"/a\"]", 2, "duplicate"),
    ];
    let home = Home::new();
    for (text, line, word) in cases {
        home.write("config/file", text);
        let said = home.refused();
        let place = format!("{}, line {line}: ", home.path("config/file").display());
        assert!(said.starts_with(&place), "{text}: {said}");
        assert!(said.contains(word), "{text}: {said}");
    }
    std::fs::write(home.path("config/file"), b"\xff").unwrap();
    assert!(home.refused().contains("UTF-8"));
    home.write("config/file", &"#".repeat((1 << 20) + 1));
    assert!(home.refused().contains("too large"), "{}", home.refused());
}

#[test]
fn what_somebody_else_could_have_put_there_does_not_count() {
    let home = Home::new();
    let file = home.write("config/file", SHOP);
    assert_eq!(home.allowed("/srv/shop").unwrap().services.len(), 1);
    let at = |name: &str| home.path(name).display().to_string();

    for mode in [0o620, 0o602, 0o666] {
        home.mode("config/file", mode);
        let said = home.refused();
        assert!(
            said.contains(&format!("{} can be written by others", at("config/file"))),
            "{said}"
        );
        assert!(said.contains("chmod go-w"), "{said}");
    }
    home.mode("config/file", 0o600);

    for (directory, mode) in [("config", 0o770), ("config", 0o707), ("", 0o775)] {
        home.mode(directory, mode);
        let said = home.refused();
        assert!(
            said.contains("can be written by others"),
            "{directory}: {said}"
        );
        assert!(said.contains(at(directory).trim_end_matches('/')), "{said}");
        home.mode(directory, 0o700);
    }
    // Others cannot replace a user's file in a sticky directory.
    home.mode("config", 0o1777);
    assert_eq!(home.allowed("/srv/shop").unwrap().services.len(), 1);
    home.mode("config", 0o700);

    std::fs::rename(&file, home.path("config/real")).unwrap();
    symlink("real", &file).unwrap();
    assert!(home.refused().contains("is a link"));
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(home.refused().contains("not a regular file"));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(home.refused().contains("not a regular file"));
}

#[test]
fn what_belongs_to_somebody_else_does_not_count() {
    if !nix::unistd::geteuid().is_root() {
        return; // only root can give files away
    }
    let home = Home::new();
    let file = home.write("config/file", SHOP);
    for name in ["config/file", "config"] {
        chown(home.path(name), Some(65534), None).unwrap();
        let said = home.refused();
        let place = home.path(name).display().to_string();
        assert!(
            said.contains(&format!("{place} belongs to user 65534")),
            "{said}"
        );
        chown(home.path(name), Some(0), None).unwrap();
    }
    // A link of somebody else's on the way, in a directory where everybody may make one.
    std::fs::rename(home.path("config"), home.path("real")).unwrap();
    symlink("real", home.path("config")).unwrap();
    assert_eq!(home.allowed("/srv/shop").unwrap().services.len(), 1);
    std::os::unix::fs::lchown(home.path("config"), Some(65534), None).unwrap();
    assert!(home.refused().contains("belongs to user 65534"));
    drop(file);
}

#[test]
fn a_file_below_the_root_or_behind_a_link_of_the_root_is_the_projects_word() {
    let home = Home::new();
    let root = home.path("").display().to_string();
    assert_eq!(home.allowed("/srv/shop").unwrap(), Allowed::default());
    home.write(
        "config/file",
        &SHOP.replace("/srv/shop", &root.replace("//", "/")),
    );
    let root = root.trim_end_matches('/');
    assert_eq!(home.allowed(root).unwrap(), Allowed::default());
    assert_eq!(
        home.allowed(&format!("{root}/config")).unwrap(),
        Allowed::default()
    );

    // The project is where the link is, and the file elsewhere.
    let elsewhere = Home::new();
    std::fs::create_dir(elsewhere.path("project")).unwrap();
    symlink(home.path("config"), elsewhere.path("project/link")).unwrap();
    symlink("project/link", elsewhere.path("config")).unwrap();
    let project = elsewhere.path("project").display().to_string();
    home.write("config/file", &SHOP.replace("/srv/shop", &project));
    assert_eq!(elsewhere.allowed(&project).unwrap(), Allowed::default());
    home.write("config/file", SHOP);
    assert_eq!(elsewhere.allowed("/srv/shop").unwrap().services.len(), 1);
}

#[test]
fn a_file_that_is_not_there_is_where_it_would_be() {
    let home = Home::new();
    std::fs::create_dir(home.path("real")).unwrap();
    symlink("real", home.path("link")).unwrap();
    let source = Source::of_this_user(home.path("link/.config/altair/config.toml"));
    assert!(source.is_in(&home.path("real")));
    assert!(source.is_in(&home.path("link")));
    assert!(!source.is_in(&home.path("real/project")));
    assert!(!source.is_in(&home.path("other")));
}

#[test]
fn a_home_is_that_of_the_user_database() {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap();
    let expected = user.map(|user| user.dir.join(".config/altair/config.toml"));
    let found = Source::users().map(|source| source.path().to_owned());
    assert_eq!(found, expected);
}

#[test]
fn a_line_is_one_command_of_a_shell() {
    let root = Path::new("/srv/my shop");
    assert_eq!(
        line(root, &Allow::Read(Path::new("/home/it's"))),
        r"altair allow --root='/srv/my shop' --read='/home/it'\''s'"
    );
    assert_eq!(
        line(Path::new("/srv/shop"), &Allow::Service("127.0.0.1:9000")),
        "altair allow --root=/srv/shop --service=127.0.0.1:9000"
    );
    let hostile = "a; $(touch /tmp/x) `id` \n\"'";
    let said = line(Path::new("/srv/shop"), &Allow::Env(hostile));
    let output = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(said.replacen("altair allow", "printf %s\\|", 1))
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("--root=/srv/shop|--env={hostile}|")
    );
}
