use super::*;

const CODE: &str = "fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    three();\n}\n";

fn source(path: &Path) -> Option<String> {
    (path == Path::new("src/code.rs")).then(|| CODE.to_owned())
}

fn patch(name: &str, lines: &str) -> Patch {
    Patch::parse(
        name,
        &format!("What it is.\n\n--- a/src/code.rs\n+++ b/src/code.rs\n@@ -1,1 +1,1 @@\n{lines}"),
    )
    .unwrap()
}

#[test]
fn patches_apply_together_wherever_their_lines_are() {
    let skip = patch("skip", "-    two();\n+    if !bug::is_planted(\"skip\") { two(); }\n");
    let more = patch("more", " fn b() {\n+    more();\n     three();\n");
    let new =
        Patch::parse("new", "--- /dev/null\n+++ b/src/new.rs\n@@ -0,0 +1,2 @@\n+fn c() {}\n+\n").unwrap();
    for patches in [[skip.clone(), more.clone(), new.clone()], [new, more, skip.clone()]] {
        let files = apply(&patches, &source).unwrap();
        let code = "fn a() {\n    one();\n    if !bug::is_planted(\"skip\") { two(); }\n}\n\nfn b() {\n    more();\n    three();\n}\n";
        assert_eq!(files[Path::new("src/code.rs")], code);
        assert_eq!(files[Path::new("src/new.rs")], "fn c() {}\n\n");
    }
    assert_eq!(skip.about, "What it is.");
    assert!(skip.asks_for_itself());
}

#[test]
fn a_stale_patch_is_an_error_with_its_name() {
    for (lines, why) in [
        ("-    four();\n+    five();\n", "they are not there"),
        (" }\n+// twice\n", "they are there more than once"),
    ] {
        let problems = apply(&[patch("stale", lines)], &source).unwrap_err();
        assert!(problems[0].contains("planted bug stale") && problems[0].contains(why), "{problems:?}");
    }
    let elsewhere =
        Patch::parse("gone", "--- a/src/gone.rs\n+++ b/src/gone.rs\n@@ -1 +1 @@\n-a\n+b\n").unwrap();
    let problems = apply(&[elsewhere], &source).unwrap_err();
    assert!(problems[0].contains("src/gone.rs") && problems[0].contains("no such file"), "{problems:?}");
}

#[test]
fn two_patches_of_the_same_lines_are_an_error_with_both_names() {
    let one = patch("one", "-    two();\n+    2();\n");
    let other = patch("other", "     one();\n-    two();\n }\n");
    let problems = apply(&[one, other], &source).unwrap_err();
    assert!(problems[0].contains("one and other"), "{problems:?}");
}

#[test]
fn what_is_no_patch_is_refused_with_the_line() {
    let no_hunk = Patch::parse("empty", "Only words.\n").unwrap_err();
    assert!(no_hunk.contains("empty") && no_hunk.contains("no hunk"));
    let broken = Patch::parse("broken", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n*what\n").unwrap_err();
    assert!(broken.contains("broken, line 4"), "{broken}");
}

#[test]
fn a_refreshed_patch_follows_its_code_to_another_file() {
    let old = patch(
        "moved",
        " fn gone_line() {\n     one();\n-    two();\n+    if x {\n+        two();\n+    }\n }\n",
    );
    let moved = |path: &Path| {
        (path == Path::new("src/new.rs"))
            .then(|| "mod m {\n    fn a() {\n        one();\n        two();\n    }\n}\n".to_owned())
    };
    assert!(apply(std::slice::from_ref(&old), &moved).is_err());
    let fresh = old.refreshed(&[PathBuf::from("src/new.rs")], &moved).unwrap();
    let files = apply(std::slice::from_ref(&fresh), &moved).unwrap();
    let code =
        "mod m {\n    fn a() {\n        one();\n        if x {\n            two();\n        }\n    }\n}\n";
    assert_eq!(files[Path::new("src/new.rs")], code);
    let text = fresh.to_text(&moved);
    assert!(text.contains("@@ -1,6 +1,8 @@"), "{text}");
    assert_eq!(Patch::parse("moved", &text).unwrap(), fresh);
}

#[test]
fn a_patch_whose_code_is_gone_cannot_be_refreshed() {
    let old = patch("lost", "-    four();\n+    five();\n");
    let error = old.refreshed(&[PathBuf::from("src/code.rs")], &source).unwrap_err();
    assert!(error.contains("planted bug lost") && error.contains("four()"), "{error}");
}
