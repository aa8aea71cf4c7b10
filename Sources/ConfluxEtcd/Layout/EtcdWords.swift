import ConfluxLog
import ConfluxVocabulary

/// What sequencers say about themselves, as text: the values of `serving` and below `standbys/`. They are hints: an
/// unreadable value counts as none.
extension ServingWord {
    private static let left = "left"
    private static let serves = "serves"
    private static let nobody = "-"

    init?(_ value: Bytes, at key: String) {
        guard let text = EtcdText(value, at: key), let epoch = text.number(0),
            let renewal = text.number(1), text.words.count >= 5
        else { return nil }
        let successor = text.words[4] == Self.nobody ? nil : text.words[4]
        self.init(
            epoch: Epoch(epoch), address: text.words[2], renewal: renewal,
            standing: text.words[3] == Self.left ? .left(successor: successor) : .serving)
    }

    func value(at key: String) -> Bytes {
        let words: [String] =
            switch standing {
            case .serving: [Self.serves, Self.nobody]
            case .left(let successor): [Self.left, successor ?? Self.nobody]
            }
        return EtcdText(["\(epoch)", "\(renewal)", address] + words).value(at: key)
    }
}

extension StandbyWord {
    init?(_ value: Bytes, at key: String, of address: String) {
        guard let text = EtcdText(value, at: key), let last = text.number(0),
            let renewal = text.number(1)
        else { return nil }
        self.init(address: address, last: SequenceNumber(last), renewal: renewal)
    }

    func value(at key: String) -> Bytes {
        EtcdText(["\(last)", "\(renewal)"]).value(at: key)
    }
}
