//! Files that import each other in a circle can only be understood together: a circle has no more
//! than two, in all crates of the workspace. Those that are larger are known, and may not grow.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Most files of a circle.
const FILES_MAX: usize = 2;

/// The circles that have more files, with their crates. One that is broken leaves this list.
const KNOWN: [(&str, &[&str]); 7] = [
    ("nvcaracal", &["batch", "database", "options", "snapshot"]),
    ("nvcaracal", &["data", "data::foreign", "derived", "stored"]),
    ("nvcaracal", &["dynamic", "dynamic::read", "dynamic::types", "dynamic::write"]),
    ("nvcaracal", &["index", "rows", "schema", "transaction"]),
    ("sim", &["disk::cuts", "disk::explore", "disk::faults", "disk::misread"]),
    ("sim", &["fuzz::log", "fuzz::run", "fuzz::store"]),
    ("sim", &["history::indexes", "history::model", "history::program"]),
];

/// The sources of a crate, by module; tests left out.
struct Sources(BTreeMap<String, String>);

impl Sources {
    fn read(root: &Path) -> Self {
        let mut sources = BTreeMap::new();
        collect(root, "", &mut sources);
        Self(sources)
    }

    /// The module that a path is in: the longest beginning that is one.
    fn module_of(&self, path: &str) -> String {
        let mut path = path;
        while !self.0.contains_key(path) {
            path = path.rsplit_once("::").map_or("", |(before, _)| before);
        }
        path.to_string()
    }

    /// What a path of a `use` means, from the root of the crate; `None` if it is of another crate.
    fn absolute(&self, module: &str, path: &str) -> Option<String> {
        if let Some(rest) = path.strip_prefix("crate::") {
            return Some(rest.to_string());
        }
        let (mut at, mut rest) = (module, path);
        let is_relative = rest.starts_with("super::") || rest.starts_with("self::");
        rest = rest.strip_prefix("self::").unwrap_or(rest);
        while let Some(further) = rest.strip_prefix("super::") {
            at = at.rsplit_once("::").map_or("", |(before, _)| before);
            rest = further;
        }
        let joined = if at.is_empty() { rest.to_string() } else { format!("{at}::{rest}") };
        let further = rest.find("::").map_or(0, |at| rest.len() - at);
        let child = &joined[..joined.len() - further];
        let is_own = is_relative || self.0.contains_key(child);
        is_own.then_some(joined)
    }

    /// Which module imports which, through whatever re-exports.
    fn imports(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut reexports = BTreeMap::new();
        let mut uses = Vec::new();
        for (module, source) in &self.0 {
            for (is_public, path) in paths(source) {
                let Some(path) = self.absolute(module, &path) else { continue };
                if is_public && let Some((_, name)) = path.rsplit_once("::") {
                    let name = if module.is_empty() { name } else { &format!("{module}::{name}") };
                    reexports.insert(name.to_string(), path.clone());
                }
                uses.push((module.clone(), is_public, path));
            }
        }
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, is_public, mut path) in uses {
            while let Some(behind) = behind(&reexports, &path) {
                path = behind;
            }
            let to = self.module_of(&path);
            // What a room shows of its files is no import of its own.
            if to != module && !(is_public && to.starts_with(&module)) {
                imports.entry(module).or_default().insert(to);
            }
        }
        imports
    }
}

/// What a path means whose beginning is re-exported from elsewhere.
fn behind(reexports: &BTreeMap<String, String>, path: &str) -> Option<String> {
    let ends = path.match_indices("::").map(|(at, _)| at).chain([path.len()]);
    ends.filter_map(|end| {
        let behind = reexports.get(&path[..end])?;
        let is_itself = path.starts_with(behind.as_str());
        (!is_itself).then(|| format!("{behind}{}", &path[end..]))
    })
    .next()
}

fn collect(folder: &Path, module: &str, sources: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_string();
        if name == "tests" || name == "models" {
            continue;
        }
        let inner = match (name.as_str(), module) {
            ("lib" | "mod", _) => module.to_string(),
            (name, "") => name.to_string(),
            (name, module) => format!("{module}::{name}"),
        };
        if path.is_dir() {
            collect(&path, &inner, sources);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let source = fs::read_to_string(&path).expect("a source");
            let source = source.split("#[cfg(test)]\nmod tests {").next().expect("a first part");
            sources.insert(inner, source.to_string());
        }
    }
}

/// All paths of a source that may lead to other files: whether it re-exports them, and the path.
fn paths(source: &str) -> Vec<(bool, String)> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim().starts_with("//")).collect();
    let mut found = Vec::new();
    for statement in code.join("\n").split(';') {
        let last = statement.rsplit("\n\n").next().expect("a last part");
        let begin = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        let used = last.lines().position(|line| begin.iter().any(|b| line.trim().starts_with(b)));
        if let Some(line) = used {
            let text = last.lines().skip(line).collect::<Vec<_>>().join(" ");
            let (before, tree) = text.split_once("use ").expect("it begins with `use`");
            let mut each = Vec::new();
            expand("", tree, &mut each);
            found.extend(each.into_iter().map(|path| (before.contains("pub"), path)));
        } else {
            found.extend(statement.match_indices("crate::").map(|(at, _)| {
                let path =
                    statement[at..].split(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
                (false, path.into_iter().next().expect("a first part").to_string())
            }));
        }
    }
    found
}

/// The paths of a tree like `a::{b, c::d as e}`.
fn expand(before: &str, tree: &str, each: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((first, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().expect("a first part").trim();
        if !path.is_empty() {
            each.push(format!("{before}{path}"));
        }
        return;
    };
    let before = format!("{before}{first}");
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&before, &inner[from..at], each);
                from = (at + 1).min(inner.len());
            }
            _ => {}
        }
    }
}

/// Everything that a module imports, and what that imports, and so on.
fn reached(imports: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from.to_string()]);
    while let Some(module) = left.pop() {
        for next in imports.get(&module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                left.push(next.clone());
            }
        }
    }
    reached
}

/// The circles of more than one file, each once.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let behind: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|module| (module, reached(imports, module))).collect();
    let circle = |module: &String| -> Vec<String> {
        let back = |other: &&String| behind.get(other).is_some_and(|all| all.contains(module));
        behind[module].iter().filter(back).cloned().collect()
    };
    imports.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn no_circle_of_imports_has_more_than_two_files_but_those_known() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut checked, mut small, mut large) = (0, 0, BTreeSet::new());
    for entry in fs::read_dir(crates).expect("a folder of crates") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let imports = Sources::read(&path.join("src")).imports();
        for circle in circles(&imports) {
            if circle.len() <= FILES_MAX {
                small += 1;
            } else {
                large.insert((name.to_string(), circle));
            }
        }
        checked += imports.len();
    }
    let files = |files: &[&str]| files.iter().map(ToString::to_string).collect();
    let known: BTreeSet<(String, Vec<String>)> =
        KNOWN.iter().map(|(name, circle)| (name.to_string(), files(circle))).collect();
    let new: Vec<_> = large.difference(&known).collect();
    assert!(new.is_empty(), "files that import each other: {new:#?}");
    let broken: Vec<_> = known.difference(&large).collect();
    assert!(broken.is_empty(), "no circles any more, so they leave the list: {broken:#?}");
    assert!(checked > 200, "{checked} files import something");
    assert!(small > 0, "the small circles that there are must be found");
}

#[test]
fn circles_are_found_through_trees_and_re_exports() {
    let source = |text: &str| text.to_string();
    let sources = Sources(BTreeMap::from([
        (source(""), source("mod a;\npub use a::A;\n")),
        (source("a"), source("use crate::{b::{B, C as D}, d};\n\npub struct A;\n")),
        (source("b"), source("mod c;\n\npub(crate) use self::c::B;\n")),
        (source("b::c"), source("use super::super::d::x;\n\npub struct B;\n")),
        (source("d"), source("fn x() {\n    crate::A::new();\n}\n")),
    ]));
    let imports = sources.imports();
    let all = ["a", "b::c", "d"].map(String::from).to_vec();
    assert_eq!(circles(&imports), BTreeSet::from([all]), "{imports:?}");
}
