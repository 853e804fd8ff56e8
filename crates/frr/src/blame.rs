//! Whose text it is that FRR refuses. One user's mistake is nobody else's.

use underlay_desired::ObjectRef;
use underlay_desired::frr::Config;

use crate::diff::Command;
use crate::ledger::Ledger;
use crate::tree::{Block, parse};

/// A user's text, as a tree.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    /// Where it is written.
    pub object: &'a ObjectRef,
    /// Its lines.
    pub block: Block,
}

/// The texts of a configuration, in the order in which FRR reads them.
#[derive(Debug)]
pub(crate) struct Texts<'a>(Vec<Text<'a>>);

impl<'a> Texts<'a> {
    pub fn of(config: &'a Config) -> Self {
        let texts = config.raw.iter().filter_map(|raw| {
            let object = raw.why.objects().next()?;
            Some(Text { object, block: parse(&raw.text) })
        });
        Self(texts.collect())
    }

    /// Those with lines that FRR has never taken.
    pub fn news(&self, ledger: &Ledger) -> impl Iterator<Item = &Text<'a>> {
        self.0.iter().filter(|text| !ledger.knows(&text.block))
    }

    /// The object to blame for a line that FRR refused: the last one that has the line in its text. If nobody has, FRR
    /// took all before the last text that is new.
    pub fn author(&self, refused: &Command, ledger: &Ledger) -> Option<&'a ObjectRef> {
        let path: Vec<String> = refused.context.iter().chain([&refused.line]).cloned().collect();
        let author = self.0.iter().rfind(|text| text.block.contains_path(&path));
        author.map(|text| text.object).or_else(|| self.newest(ledger))
    }

    /// The object to blame when only the whole is wrong.
    pub fn newest(&self, ledger: &Ledger) -> Option<&'a ObjectRef> {
        self.news(ledger).last().map(|text| text.object)
    }
}

#[cfg(test)]
mod tests {
    use underlay_desired::frr::RawText;
    use underlay_desired::why::Why;

    use super::*;
    use crate::diff::{Daemon, Target};

    fn config(texts: &[(&str, &str)]) -> Config {
        let raw = |(name, text): &(&str, &str)| RawText {
            text: (*text).to_owned(),
            why: Why::from_object(ObjectRef::namespaced("FRRConfiguration", "frr", name)),
        };
        Config { raw: texts.iter().map(raw).collect(), ..Config::default() }
    }

    fn command(context: &[&str], line: &str) -> Command {
        Command {
            target: Target::One(Daemon::Bgpd),
            context: context.iter().map(|line| (*line).to_owned()).collect(),
            line: line.to_owned(),
            optional: false,
        }
    }

    #[test]
    fn the_last_who_wrote_a_line_is_to_blame_or_else_the_last_who_came() {
        let old = "router bgp 1\n neighbor 10.0.0.2 description x\n";
        let config = config(&[("a", old), ("b", "router bgp 1\n bgp nonsense\n"), ("c", "ip nht x\n")]);
        let texts = Texts::of(&config);
        let ledger = Ledger::default().expecting(&parse(old));
        assert_eq!(texts.news(&ledger).map(|text| text.object.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
        let author =
            |command: &Command, ledger: &Ledger| texts.author(command, ledger).map(|one| one.name.clone());
        assert_eq!(author(&command(&["router bgp 1"], "bgp nonsense"), &ledger).as_deref(), Some("b"));
        let old = command(&["router bgp 1"], "neighbor 10.0.0.2 description x");
        assert_eq!(author(&old, &ledger).as_deref(), Some("a"));
        assert_eq!(author(&command(&[], "bfd"), &ledger).as_deref(), Some("c"));
        let all = config.raw.iter().fold(ledger, |ledger, raw| ledger.expecting(&parse(&raw.text)));
        assert_eq!(author(&command(&[], "bfd"), &all), None);
    }
}
