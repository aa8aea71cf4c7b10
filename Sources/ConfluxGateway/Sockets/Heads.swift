import Conflux
import ConfluxVocabulary

/// Writes the heads of messages: small JSON objects with sorted keys, always with the same members.
enum Head {
    static func bytes(
        _ kind: String, _ store: StoreName, _ place: RecordPlace, log: LogID?,
        previous: SequenceNumber, actions: Int
    ) -> [UInt8] {
        func text(_ value: (some CustomStringConvertible)?) -> String {
            value.map { "\"\($0)\"" } ?? "null"
        }
        let head =
            #"{"actions":\#(actions),"epoch":\#(place.epoch.map { "\($0.rawValue)" } ?? "null"),"kind":"\#(kind)","#
            + #""log":\#(text(log)),"origin":\#(text(place.origin)),"previous":\#(previous.rawValue),"#
            + #""sequence":\#(place.sequence.rawValue),"store":"\#(store)","#
            + #""timestamp":\#(text(place.timestamp?.iso8601))}"#
        return Array(head.utf8)
    }
}
