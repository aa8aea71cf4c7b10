import ConfluxVocabulary

/// The hellos that wait: for their `joined` entry, for the holder of a name or key, or for the log
/// to confirm this term. A hello may name as many stores and states as a frame has room for, so a
/// bound on the number of hellos alone would not bound memory.
extension SequencerMachine {
    /// The most stores and states that waiting hellos name, which the keys share. Hellos that name
    /// only a few do not count. *At the bound* a hello gets no answer, and the node repeats it.
    static let waitingNamesMax = 1 << 20
    /// How many names are a few. *Use*: for such a hello the others need not be counted.
    fileprivate static let fewNamesMax = 64

    /// Whether a hello may wait.
    func hasRoom(for hello: Hello, from connection: ConnectionID) -> Bool {
        hello.countedNames == 0
            || waitingNames.hasRoom(
                for: hello.sharer(on: connection), hello.countedNames, of: Self.waitingNamesMax)
    }

    /// How many names the hellos that count have, and whose.
    var waitingNames: Shares<Sharer> {
        var names = joining.names
        for (connection, hello) in confirmations.hellos {
            names.add(hello.countedNames, of: hello.sharer(on: connection))
        }
        for inquiry in inquiries.values {
            names.add(
                inquiry.newcomer.countedNames, of: inquiry.newcomer.sharer(on: inquiry.connection))
        }
        return names
    }
}

extension Hello {
    /// How many stores and states it names; 0 if they are a few.
    var countedNames: Int {
        let count = hosted.count + bridged.count
        return count <= SequencerMachine.fewNamesMax ? 0 : count
    }
}
