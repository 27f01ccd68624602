//! What does not depend on definitions: schemas, roles, the database, settings, and the like.

use super::databases;
use super::names::{ROLES, schemas};
use super::objects::{BTREE, HEAP, OWNER, PG_CATALOG, database_id};
use super::relations::Known;
use super::rows::Row;
use super::services::activity;
use super::session::{NAME, System};
use super::types::{ENUM_OPERATOR_CLASS, OPERATOR_CLASSES};

/// PostgreSQL's words, each with its category, and whether a column is called so only behind AS.
const KEYWORDS: &str = include_str!("keywords.txt");

fn keyword(line: &str, row: Row) -> Row {
    let mut parts = line.split(' ');
    let (name, category) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let needs_as = parts.next().is_some();
    let description = match category {
        "R" => "reserved",
        "T" => "reserved (can be function or type name)",
        "C" => "unreserved (cannot be function or type name)",
        _ => "unreserved",
    };
    row.set("word", name)
        .set("catcode", category)
        .set("barelabel", !needs_as)
        .set("catdesc", description)
        .set("baredesc", if needs_as { "requires AS" } else { "can be bare label" })
}

/// The rows of one of these relations.
pub(super) fn rows(system: &System, relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    let new = || Row::of(relation);
    Some(match own {
        "pg_get_keywords" => KEYWORDS.lines().map(|line| keyword(line, new())).collect(),
        "pg_namespace" => schemas(&system.catalog)
            .map(|(id, name, owner)| {
                new().set("oid", id).set("nspname", name).set("nspowner", owner)
            })
            .collect(),
        "pg_roles" | "pg_authid" => {
            ROLES.iter().map(|(id, name)| role_row(*id, name, new(), own)).collect()
        }
        "pg_user" | "pg_shadow" => {
            let all = ["usecreatedb", "usesuper", "userepl", "usebypassrls"];
            let row = new().set("usename", NAME).set("usesysid", OWNER);
            vec![all.iter().fold(row, |row, name| row.set(name, true))]
        }
        "pg_database" => databases::rows(system, relation),
        "pg_am" => [(HEAP, "heap", "t"), (BTREE, "btree", "i")]
            .into_iter()
            .map(|(id, name, kind)| new().set("oid", id).set("amname", name).set("amtype", kind))
            .collect(),
        "pg_collation" => collations(&new),
        "pg_opclass" => OPERATOR_CLASSES
            .iter()
            .map(|(id, name, ty)| (*id, *name, ty.oid().number() as i32))
            .chain([ENUM_OPERATOR_CLASS])
            .map(|(id, name, ty)| {
                new()
                    .set("oid", id)
                    .set("opcmethod", BTREE)
                    .set("opcname", name)
                    .set("opcnamespace", PG_CATALOG)
                    .set("opcowner", OWNER)
                    .set("opcintype", ty)
                    .set("opcdefault", true)
            })
            .collect(),
        "pg_language" => [(12, "internal"), (13, "c"), (14, "sql")]
            .into_iter()
            .map(|(id, name)| {
                new()
                    .set("oid", id)
                    .set("lanname", name)
                    .set("lanowner", OWNER)
                    .set("lanpltrusted", name == "sql")
            })
            .collect(),
        "pg_tablespace" => [(1_663, "pg_default"), (1_664, "pg_global")]
            .into_iter()
            .map(|(id, name)| new().set("oid", id).set("spcname", name).set("spcowner", OWNER))
            .collect(),
        _ => return of_session(system, relation, own),
    })
}

fn of_session(system: &System, relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    let new = || Row::of(relation);
    Some(match own {
        "pg_settings" => system
            .session
            .settings
            .iter()
            .map(|(name, value)| {
                new()
                    .all(&["name"], name)
                    .all(&["setting", "reset_val", "boot_val"], value)
                    .set("category", "Settings of the session")
                    .set("context", "user")
                    .set("vartype", "string")
                    .set("source", "session")
            })
            .collect(),
        "pg_locks" => {
            let services = system.services.iter();
            let locks = services.flat_map(|services| services.locks());
            let database = database_id(system.catalog.database());
            locks.map(|lock| lock.row(new(), database)).collect()
        }
        "pg_stat_activity" if system.services.is_some() => {
            let services = system.services.iter();
            services.flat_map(|services| activity(&**services, &new)).collect()
        }
        "pg_stat_activity" => vec![
            new()
                .set("datid", database_id(system.catalog.database()))
                .set("datname", system.catalog.database())
                .set("usename", NAME)
                .set("pid", system.session.process)
                .set("usesysid", OWNER)
                .set("state", "active")
                .set("backend_type", "client backend"),
        ],
        _ => return None,
    })
}

fn role_row(id: i32, name: &str, row: Row, relation: &str) -> Row {
    let is_user = id == OWNER;
    let all = [
        "rolsuper",
        "rolcreaterole",
        "rolcreatedb",
        "rolcanlogin",
        "rolreplication",
        "rolbypassrls",
    ];
    let row = row
        .set("oid", id)
        .set("rolname", name)
        .set("rolinherit", true)
        .set("rolconnlimit", -1)
        .set("rolpassword", (relation == "pg_roles").then_some("********"));
    all.iter().fold(row, |row, each| row.set(each, is_user))
}

fn collations(new: &dyn Fn() -> Row) -> Vec<Row> {
    [(100, "default", "d", ""), (950, "C", "c", "C"), (951, "POSIX", "c", "POSIX")]
        .into_iter()
        .map(|(id, name, provider, locale)| {
            let locale = (!locale.is_empty()).then_some(locale);
            new()
                .set("oid", id)
                .set("collname", name)
                .set("collnamespace", PG_CATALOG)
                .set("collowner", OWNER)
                .set("collprovider", provider)
                .set("collisdeterministic", true)
                .set("collencoding", -1)
                .set("collcollate", locale)
                .set("collctype", locale)
        })
        .collect()
}
