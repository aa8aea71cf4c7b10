import ConfluxVocabulary

/// The hellos that wait: for their `joined` entry, for who holds a name or a key, or for the log's
/// word on this tenure. Each names stores and states, as many as a frame has room for, so that their
/// number alone would bound no memory.
extension SequencerMachine {
    /// The most stores and states that waiting hellos name, but for those that name a few. *At the
    /// bound* a hello is left unanswered: it is said again.
    static let waitingNamesMax = 1 << 20
    /// How many are a few. *Use*: such a hello costs no look at the others.
    private static let fewNamesMax = 64

    /// Whether a hello may wait.
    func hasRoom(for hello: Hello) -> Bool {
        hello.nameCount <= Self.fewNamesMax
            || waitingNames + hello.nameCount <= Self.waitingNamesMax
    }

    /// How many names those hellos have that count.
    var waitingNames: Int {
        func sum(_ hellos: some Sequence<Hello>) -> Int {
            hellos.reduce(0) {
                $1.nameCount <= Self.fewNamesMax ? $0 : $0 + $1.nameCount
            }
        }
        return sum(joining.values.lazy.map(\.hello)) + sum(confirmations.hellos)
            + sum(inquiries.values.lazy.map(\.newcomer))
    }
}

extension Hello {
    /// How many stores and states it names.
    fileprivate var nameCount: Int { hosted.count + bridged.count }
}
