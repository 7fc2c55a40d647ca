//! Web pages, and the HTTP variants that fetch them (ITU-R S.1711 Annex 3, section 5.3).

use super::mah;
use super::plan::{ConnectionPlan, Exchange, Order, Start};
use units::{Instant, RngStream};

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebPage {
    /// Its name.
    pub name: &'static str,
    /// Its elements, the primary file included; at least one.
    pub elements: u64,
    /// Sum of their octets.
    pub bytes: u64,
}

/// The five pages of S.1711 Annex 3, table 21.
pub const S1711_PAGES: [WebPage; 5] = [
    WebPage { name: "China2008", elements: 30, bytes: 212_207 },
    WebPage { name: "CRL", elements: 21, bytes: 80_333 },
    WebPage { name: "FIFA", elements: 33, bytes: 176_105 },
    WebPage { name: "LionKing", elements: 16, bytes: 393_672 },
    WebPage { name: "RBLAB", elements: 8, bytes: 72_103 },
];

/// How a page is fetched; the primary file always first and alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.0: a connection for each element (section 5.3.1).
    PerElement {
        /// Maximum number of simultaneous connections; 4 in the browsers of the time. At least 1.
        at_once: usize,
    },
    /// HTTP/1.0 with "keep-alive": connections that each fetch one element after another (section
    /// 5.3.2).
    KeepAlive {
        /// Number of connections; at least 1.
        connections: usize,
    },
    /// HTTP/1.1 on one connection, one element after another (section 5.3.3).
    Serial,
    /// HTTP/1.1 on one connection, elements requested as soon as the primary file has named them
    /// (sections 5.3.4 and 5.3.5), which it does evenly from its beginning to its end.
    Pipelined,
}

impl WebPage {
    /// The octets of each element if all have the same size.
    pub fn even(&self) -> Vec<u64> {
        (0..self.elements)
            .map(|index| self.bytes / self.elements + u64::from(index < self.bytes % self.elements))
            .collect()
    }

    /// The octets of each element, drawn from the sizes of Mah's secondary files and scaled to the
    /// page's octets; at least one octet each. (The Recommendation does not give them.)
    pub fn drawn(&self, rng: &mut RngStream) -> Vec<u64> {
        let drawn: Vec<u64> =
            (0..self.elements).map(|_| mah::draw(mah::Size::SecondaryReply, rng)).collect();
        let all = u128::from(drawn.iter().sum::<u64>().max(1));
        // The borders between elements are rounded, so that the sum is exact.
        let spare = self.bytes.saturating_sub(self.elements);
        let (mut sum, mut border) = (0, 0);
        drawn
            .into_iter()
            .map(|size| {
                sum += u128::from(size);
                let next = (u128::from(spare) * sum / all) as u64;
                1 + next - core::mem::replace(&mut border, next)
            })
            .collect()
    }
}

impl Http {
    /// Connections that fetch elements of these `sizes` from `start` on, with requests of `request`
    /// octets.
    ///
    /// # Panics
    /// Without an element or a connection.
    pub fn plans(self, start: Instant, sizes: &[u64], request: u64) -> Vec<ConnectionPlan> {
        assert!(!sizes.is_empty(), "a page has a primary file");
        let ask = |&response: &u64| Exchange { request, response };
        let all = || sizes.iter().map(ask).collect();
        match self {
            Self::PerElement { at_once } => {
                assert!(at_once > 0, "elements need a connection");
                let check_page = Start::InTurn { after: 0, at_once };
                let begin = |index| if index == 0 { Start::At(start) } else { check_page };
                let alone = |(index, size)| {
                    ConnectionPlan::new(begin(index), Order::OneByOne, vec![ask(size)])
                };
                sizes.iter().enumerate().map(alone).collect()
            }
            Self::KeepAlive { connections } => {
                assert!(connections > 0, "elements need a connection");
                let used = connections.min(sizes.len().saturating_sub(1).max(1));
                let begin = |index| match index {
                    0 => Start::At(start),
                    _ => Start::AfterFirstOf(0),
                };
                let mut plans: Vec<_> = (0..used)
                    .map(|index| ConnectionPlan::new(begin(index), Order::OneByOne, Vec::new()))
                    .collect();
                for (index, size) in sizes.iter().enumerate() {
                    plans[index.saturating_sub(1) % used].exchanges.push(ask(size));
                }
                plans
            }
            Self::Serial => vec![ConnectionPlan::new(Start::At(start), Order::OneByOne, all())],
            Self::Pipelined => {
                vec![ConnectionPlan::new(Start::At(start), Order::PipelinedAsNamed, all())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Http; 4] = [
        Http::PerElement { at_once: 4 },
        Http::KeepAlive { connections: 4 },
        Http::Serial,
        Http::Pipelined,
    ];

    #[test]
    fn every_http_variant_fetches_every_element_once() {
        let mut rng = RngStream::new(1, 0, "pages");
        for page in S1711_PAGES {
            for sizes in [page.even(), page.drawn(&mut rng)] {
                assert_eq!(sizes.iter().sum::<u64>(), page.bytes, "{}", page.name);
                assert!(sizes.len() as u64 == page.elements && sizes.iter().all(|&size| size > 0));
                for (http, connections) in ALL.into_iter().zip([sizes.len(), 4, 1, 1]) {
                    let plans = http.plans(Instant::ZERO, &sizes, 300);
                    assert_eq!(plans.len(), connections);
                    let fetched = plans.iter().flat_map(|plan| &plan.exchanges);
                    let mut fetched: Vec<u64> = fetched.map(|one| one.response).collect();
                    let mut sizes = sizes.clone();
                    fetched.sort_unstable();
                    sizes.sort_unstable();
                    assert_eq!(fetched, sizes);
                }
            }
        }
    }

    #[test]
    fn pages_match_table_21() {
        let [elements, bytes] = [|page: &WebPage| page.elements, |page: &WebPage| page.bytes]
            .map(|read| S1711_PAGES.iter().map(read).sum::<u64>());
        assert_eq!((elements, bytes), (108, 934_420));
    }
}
