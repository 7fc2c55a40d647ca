//! The configurations in docs/guide and README.md are valid, and tables of keys match the parser.

use gateway::{Config, Role, SourceMode};

const GUIDE: &str = include_str!("../../../docs/guide/gateway.md");

/// The guide's blocks of TOML, in their order.
fn blocks() -> Vec<&'static str> {
    blocks_of(GUIDE)
}

fn blocks_of(page: &'static str) -> Vec<&'static str> {
    page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

fn find(words: &str) -> &'static str {
    blocks().into_iter().find(|block| block.contains(words)).expect("a block in the guide")
}

#[test]
fn the_hubs_of_the_readme_and_the_quick_start_are_taken() {
    let readme = include_str!("../../../README.md");
    let (_, printed) = readme.split_once("printf '").unwrap();
    let readme = printed.split_once('\'').unwrap().0.replace("\\n", "\n");
    let quick_start = include_str!("../../../docs/guide/quickstart.md");
    let (_, written) = quick_start.split_once("hub.toml <<'END'\n").unwrap();
    let quick_start = written.split_once("END\n").unwrap().0.to_owned();
    for hub in [readme, quick_start] {
        let site = "[[terminal]]\nname = \"boat\"\n\
                    public_key = \"xcvHZvfOxkd6ty807qPyjRB92qlHFOvrbO4FcjvCUmA=\"\n";
        let config = Config::parse("hub.toml", &format!("{hub}{site}")).unwrap();
        assert!(matches!(config.role, Role::Hub(_)));
    }
}

#[test]
fn the_packages_configurations_are_taken() {
    let hub = include_str!("../../../packaging/debian/hub.toml");
    let terminal = include_str!("../../../packaging/debian/terminal.toml");
    assert!(matches!(Config::parse("hub.toml", hub).unwrap().role, Role::Hub(_)));
    assert!(matches!(Config::parse("terminal.toml", terminal).unwrap().role, Role::Terminal(_)));
}

#[test]
fn the_examples_with_keys_are_taken() {
    let blocks = blocks_of(include_str!("../../../docs/guide/security.md"));
    let [hub, terminal] = blocks[..] else { panic!("two blocks") };
    let role = |text| Config::parse("security.toml", text).unwrap().role;
    assert!(matches!(role(terminal), Role::Terminal(_)));
    let Role::Hub(hub) = role(hub) else { panic!("a hub") };
    assert!(hub.terminals.iter().all(|terminal| terminal.key.is_some()));
}

#[test]
fn the_examples_with_paths_are_taken() {
    let blocks = blocks_of(include_str!("../../../docs/guide/failover.md"));
    let terminals = blocks.iter().filter(|block| block.contains("[[path]]"));
    let paths = terminals.map(|block| Config::parse("failover.toml", block).unwrap().paths.len());
    assert_eq!(paths.collect::<Vec<_>>(), [2, 2]);
    let fail = blocks.iter().find(|block| block.contains("[fail]")).unwrap();
    let whole = blocks.iter().find(|block| block.contains("[[path]]")).unwrap();
    Config::parse("fail.toml", &format!("{whole}{fail}")).unwrap();
    let known = blocks.iter().find(|block| block.starts_with("[[terminal]]")).unwrap();
    let hub = format!(
        "role = \"hub\"\nprivate_key_file = \"/k\"\n[link]\nlisten = \"127.0.0.1:7\"\n{known}"
    );
    assert!(matches!(Config::parse("hub.toml", &hub).unwrap().role, Role::Hub(_)));
}

#[test]
fn the_hubs_examples_are_taken() {
    let hub = find("role = \"hub\"");
    Config::parse("hub.toml", hub).unwrap();
    for more in [find("deny ="), find("source = \"client\"")] {
        let config = Config::parse("hub.toml", &format!("{hub}{more}")).unwrap();
        let Role::Hub(section) = config.role else { panic!("a hub") };
        assert!(section.destinations.deny.len() == 2 || section.source == SourceMode::Client);
        assert!(section.guarded);
    }
}

#[test]
fn the_lines_that_refuse_private_networks_are_taken() {
    let blocks = blocks_of(include_str!("../../../docs/guide/reach.md"));
    let private = blocks.iter().find(|block| block.contains("100.64.0.0/10")).unwrap();
    let hub = find("role = \"hub\"");
    let config = Config::parse("hub.toml", &format!("{hub}{private}")).unwrap();
    let Role::Hub(section) = config.role else { panic!("a hub") };
    assert_eq!((section.destinations.deny.len(), section.destinations.allow.len()), (5, 1));
}

#[test]
fn the_terminals_examples_are_taken() {
    let terminal = find("role = \"terminal\"");
    Config::parse("terminal.toml", terminal).unwrap();
    let text = format!("{terminal}{}", find("[intercept]"));
    let Role::Terminal(section) = Config::parse("terminal.toml", &text).unwrap().role else {
        panic!("a terminal")
    };
    assert_eq!(section.intercept.unwrap().interfaces, ["lan0"]);
    assert_eq!(section.socks5.len(), 2);
}

#[test]
fn the_examples_on_confirming_are_taken() {
    let terminal = find("role = \"terminal\"");
    let rules = find("[[accept_rule]]").replace("accept = \"early\"\n", "");
    let intercept = find("interfaces = [\"lan0\"]");
    let text = format!("{terminal}{rules}{intercept}{}", find("[intercept.confirm]"));
    let Role::Terminal(section) = Config::parse("terminal.toml", &text).unwrap().role else {
        panic!("a terminal")
    };
    assert_eq!(section.accept.rules.len(), 3);
    assert_eq!(section.intercept.unwrap().confirm, gateway::ConfirmSection::default());
}

#[test]
fn the_page_on_two_segments_has_examples_that_are_taken() {
    for block in blocks_of(include_str!("../../../docs/guide/two-segment.md")) {
        let config = Config::parse("single.toml", block).unwrap();
        assert!(matches!(config.role, Role::Single(_)));
    }
}

#[test]
fn the_page_on_reach_has_examples_that_are_taken() {
    let page = include_str!("../../../docs/guide/reach.md");
    let hub = find("role = \"hub\"");
    let terminal = find("role = \"terminal\"");
    for block in blocks_of(page) {
        let base = if block.contains("[limits.client]") { terminal } else { hub };
        // The page has terminals of its own.
        let terminals = hub.find("[[terminal]]").filter(|_| block.contains("[[terminal]]"));
        let base = terminals.map_or(base, |at| &base[..at]);
        Config::parse("reach.toml", &format!("{base}{block}")).unwrap();
    }
}

#[test]
fn the_page_on_multi_access_has_a_valid_example() {
    let page = include_str!("../../../docs/guide/multi-access.md");
    let blocks = blocks_of(page);
    assert_eq!(blocks.len(), 1);
    let hub = find("role = \"hub\"");
    let config = Config::parse("hub.toml", &format!("{hub}{}", blocks[0])).unwrap();
    let Role::Hub(section) = config.role else { panic!("a hub") };
    assert_eq!(section.mac.unwrap().to_str(), Some("/run/bentpipe/mac.sock"));
}

#[test]
fn the_monitoring_pages_examples_are_taken() {
    let page = include_str!("../../../docs/guide/monitoring.md");
    let blocks = blocks_of(page);
    assert_eq!(blocks.len(), 2);
    let hub = find("role = \"hub\"");
    for block in blocks {
        let config = Config::parse("hub.toml", &format!("{hub}{block}")).unwrap();
        assert!(config.metrics.is_some() != config.control.is_some());
    }
}

#[test]
fn the_page_on_names_has_examples_that_are_taken() {
    let blocks = blocks_of(include_str!("../../../docs/guide/names.md"));
    let [terminal, hub] = blocks[..] else { panic!("two blocks") };
    let config = Config::parse("t.toml", &format!("{}{terminal}", find("role = \"terminal\"")));
    let Role::Terminal(section) = config.unwrap().role else { panic!("a terminal") };
    assert!(section.dns.unwrap().placeholders.is_some());
    let config = Config::parse("hub.toml", &format!("{}{hub}", find("role = \"hub\"")));
    let Role::Hub(section) = config.unwrap().role else { panic!("a hub") };
    assert_eq!(section.name_servers.len(), 1);
}

#[test]
fn the_page_on_plans_has_a_hub_for_ten_sites() {
    let page = include_str!("../../../docs/guide/plans.md");
    let [hub] = blocks_of(page)[..] else { panic!("one block") };
    let Role::Hub(section) = Config::parse("hub.toml", hub).unwrap().role else { panic!("a hub") };
    assert_eq!((section.terminals.len(), section.plans.len(), section.classes.len()), (10, 4, 2));
    assert!(section.terminals.iter().all(|terminal| terminal.key.is_some()));
    // What the page says that each has is what comes out.
    let names: Vec<&str> = section.plans.iter().map(|plan| plan.plan.name.as_str()).collect();
    let mut terms = vec![relay::plan::Terms::default()];
    terms.extend(section.plans.iter().map(|plan| plan.plan.terms_down()));
    let number = |plan: &str| names.iter().position(|name| *name == plan).map_or(0, |at| at + 1);
    let claims = section.terminals.iter().map(|terminal| {
        let plan = terminal.plan.as_deref().map_or(0, number);
        relay::plan::Claim { plan, need: u64::MAX }
    });
    let claims: Vec<relay::plan::Claim> = claims.collect();
    let shares = relay::plan::allocate(units::BitRate::from_mbps(20), &terms, &claims);
    for (terminal, share) in section.terminals.iter().zip(shares) {
        let mbps = format!("{:.1} Mbit/s", share as f64 / 1e6);
        let row = match terminal.plan.as_deref() {
            Some("emergency") => "| clinic |",
            Some("business") => "| a business site |",
            Some("ferries") => "| each ferry |",
            Some(_) | None => "| a school, the camp, the spare |",
        };
        let said = page.lines().find(|line| line.starts_with(row)).unwrap();
        assert!(said.contains(&mbps), "{}: {mbps}, {said}", terminal.name);
    }
}

#[test]
fn every_key_of_the_page_on_plans_is_known() {
    let page = include_str!("../../../docs/guide/plans.md");
    let table = page.split("## All keys").nth(1).unwrap();
    let mut keys = 0;
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let mut section = String::new();
        for name in row.split('|').nth(1).unwrap().replace('`', "").split(',').map(str::trim) {
            let (table, key) = name.split_once('.').unwrap();
            if !table.is_empty() {
                section = table.to_owned();
            }
            let (open, close) = if section == "limits" { ("[", "]") } else { ("[[", "]]") };
            let text = format!("role = \"hub\"\n{open}{section}{close}\n{key} = {{}}\n");
            let error = Config::parse("t.toml", &text).unwrap_err();
            let full = format!("{section}.{key}");
            let known = |m: &gateway::Mistake| m.key == full && !m.found.contains("an unknown key");
            assert!(error.mistakes.iter().any(known), "{full}: {error}");
            keys += 1;
        }
    }
    assert_eq!(keys, 18);
}

#[test]
fn every_block_is_one_of_these() {
    assert_eq!(blocks().len(), 7);
}

/// Returns whether `key` exists in `table` (`""` for the head of the file). An empty table is not a
/// valid value of any key, so the error for a known key has its expected form.
fn is_known(role: &str, table: &str, key: &str) -> bool {
    let text = match table {
        "" => format!("{key} = {{}}\n"),
        // Some are looked at only where what a table must have is there.
        "forward" if role == "terminal" && key != "interfaces" => {
            format!("[forward]\ninterfaces = \"lan0\"\n{key} = {{}}\n")
        }
        "path" if key != "name" => {
            format!("private_key_file = \"/k\"\n[[path]]\nname = \"a\"\n{key} = {{}}\n")
        }
        "link" if key == "bond" => format!("[link]\n{key} = {{}}\n[[path]]\nname = \"a\"\n"),
        "terminal" | "accept_rule" | "path" => format!("[[{table}]]\n{key} = {{}}\n"),
        _ => format!("[{table}]\n{key} = {{}}\n"),
    };
    let role = if table.is_empty() && key == "role" {
        String::new()
    } else {
        format!("role = \"{role}\"\n")
    };
    let error = Config::parse("t.toml", &format!("{role}{text}")).unwrap_err();
    let full = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
    error.mistakes.iter().any(|m| m.key == full && !m.found.contains("an unknown key"))
}

/// The keys of a page's tables whose head begins so: `table.key`, `.key` for the same table again.
fn keys_of(page: &str) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for rows in page.split("| key | default | meaning |\n").skip(1) {
        for row in rows.lines().take_while(|line| line.starts_with('|')).skip(1) {
            let names = row.split('|').nth(1).unwrap().replace('`', "");
            let mut section = String::new();
            // `preshared_key(_file)` is two keys.
            let whole = |name: &str| name.trim().replace("(_file)", "_file");
            for name in names.split(',').map(whole) {
                let (table, key) = match name.rsplit_once('.') {
                    Some((table, key)) if !table.is_empty() => (table.to_owned(), key),
                    Some((_, key)) => (section.clone(), key),
                    None => (String::new(), name.as_str()),
                };
                section.clone_from(&table);
                keys.push((table, key.to_owned()));
            }
        }
    }
    keys
}

/// The tables of all keys and the reader agree: a key of a table is known.
#[test]
fn every_key_of_the_tables_is_known() {
    let failover = include_str!("../../../docs/guide/failover.md");
    let other_traffic = include_str!("../../../docs/guide/other-traffic.md");
    let names = include_str!("../../../docs/guide/names.md");
    let tcp = include_str!("../../../docs/guide/forwarded-tcp.md");
    let pages = [(GUIDE, 70), (failover, 20), (other_traffic, 14), (names, 7), (tcp, 4)];
    for (page, least) in pages {
        let keys = keys_of(page);
        for (table, key) in &keys {
            let known = ["terminal", "hub"].iter().any(|role| is_known(role, table, key));
            assert!(known, "{table}.{key}");
        }
        assert!(keys.len() >= least, "{} keys", keys.len());
    }
    let single = keys_of(include_str!("../../../docs/guide/two-segment.md"));
    for (_, key) in &single {
        assert!(is_known("single", "single", key), "single.{key}");
    }
    assert!(single.len() > 12, "{} keys", single.len());
}

/// Pages say in passing, too, what stands in a configuration.
#[test]
fn the_pages_on_fail_have_valid_examples() {
    let terminal = find("role = \"terminal\"");
    let pages = [
        include_str!("../../../docs/guide/plans.md"),
        include_str!("../../../docs/guide/security.md"),
        include_str!("../../../docs/guide/failover.md"),
    ];
    let mut count = 0;
    for line in pages.iter().flat_map(|page| page.lines()) {
        for key in ["unreachable = \"", "full = \""] {
            let found = line.split_once(key).filter(|(before, _)| !before.ends_with('_'));
            let Some((_, rest)) = found else { continue };
            let value = rest.split('"').next().unwrap();
            let text = format!("{terminal}[fail]\n{key}{value}\"\n");
            Config::parse("fail.toml", &text).unwrap_or_else(|error| panic!("{line}: {error}"));
            count += 1;
        }
    }
    assert!(count >= 5, "{count} places");
}

#[test]
fn the_page_on_operation_has_valid_examples() {
    let blocks = blocks_of(include_str!("../../../docs/guide/operation.md"));
    let [another, user, log] = blocks[..] else { panic!("three blocks") };
    let hub = find("role = \"hub\"");
    let config = Config::parse("hub.toml", &format!("{hub}{another}")).unwrap();
    let Role::Hub(section) = config.role else { panic!("a hub") };
    assert_eq!(section.terminals.len(), 2);
    let config = Config::parse("hub.toml", &format!("{user}{hub}{log}")).unwrap();
    assert_eq!(config.user.as_deref(), Some("bentpipe"));
}

#[test]
fn the_page_on_other_traffic_has_valid_examples() {
    let page = include_str!("../../../docs/guide/other-traffic.md");
    let terminal = "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"10.2.0.2:7000\"\n\
                    [socks5]\nlisten = \"127.0.0.1:1080\"\n";
    let hub = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"10.2.0.2:7000\"\n";
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 6);
    for block in blocks {
        let base = if block.contains("interfaces") { terminal } else { hub };
        Config::parse("guide.toml", &format!("{base}{block}")).expect(block);
    }
    for block in blocks_of(include_str!("../../../docs/guide/forwarded-tcp.md")) {
        let base = if block.contains("interfaces") { terminal } else { hub };
        let config = Config::parse("guide.toml", &format!("{base}{block}")).expect(block);
        let tcp = config.forward.expect("[forward]").tcp;
        assert!(tcp.spoof && !tcp.space_acks && tcp.spoof_memory == 64_000_000);
    }
}
