import ConfluxVocabulary
import ConfluxWorker

/// Writes the heads of messages, and receipts: small JSON objects with sorted keys, always with the same members.
///
/// They are written byte by byte, since there is one for each message: texts would take longer than everything else.
struct HeadWriter {
    private var log: LogID?
    /// The log's id in JSON.
    private var logText = Array("null".utf8)
    private var timestamp: Timestamp?
    /// The same: many entries are ordered at the same time.
    private var timestampText = Array("null".utf8)

    private mutating func add(_ log: LogID?, to bytes: inout [UInt8]) {
        if log != self.log {
            self.log = log
            logText = Array((log.map { "\"\($0)\"" } ?? "null").utf8)
        }
        bytes += logText
    }

    mutating func head(
        _ kind: String, _ store: StoreName, _ place: RecordPlace, log: LogID?,
        previous: SequenceNumber, actions: Int
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(320)
        bytes += #"{"actions":"#.utf8
        bytes.append(digits: UInt64(actions))
        bytes += #","epoch":"#.utf8
        add(place.epoch?.rawValue, to: &bytes)
        bytes += #","kind":""#.utf8
        bytes += kind.utf8
        bytes += #"","log":"#.utf8
        add(log, to: &bytes)
        bytes += #","origin":"#.utf8
        if let origin = place.origin {
            bytes.append(UInt8(ascii: "\""))
            bytes.append(digits: origin.incarnation.rawValue)
            bytes.append(UInt8(ascii: ":"))
            bytes.append(digits: origin.counter)
            bytes.append(UInt8(ascii: "\""))
        } else {
            bytes += "null".utf8
        }
        bytes += #","previous":"#.utf8
        bytes.append(digits: previous.rawValue)
        bytes += #","sequence":"#.utf8
        bytes.append(digits: place.sequence.rawValue)
        bytes += #","store":""#.utf8
        bytes += store.state.text.utf8
        bytes.append(UInt8(ascii: "/"))
        bytes += store.instance.text.utf8
        bytes += #"","timestamp":"#.utf8
        add(place.timestamp, to: &bytes)
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    mutating func receipt(_ receipt: Receipt) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(160)
        bytes += #"{"epoch":"#.utf8
        bytes.append(digits: receipt.epoch.rawValue)
        bytes += #","log":"#.utf8
        add(receipt.log, to: &bytes)
        bytes += #","sequence":"#.utf8
        bytes.append(digits: receipt.sequence.rawValue)
        bytes += #","timestamp":"#.utf8
        add(receipt.timestamp, to: &bytes)
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private func add(_ number: UInt64?, to bytes: inout [UInt8]) {
        if let number { bytes.append(digits: number) } else { bytes += "null".utf8 }
    }

    private mutating func add(_ timestamp: Timestamp?, to bytes: inout [UInt8]) {
        if timestamp != self.timestamp {
            self.timestamp = timestamp
            timestampText = Array((timestamp.map { "\"\($0.iso8601)\"" } ?? "null").utf8)
        }
        bytes += timestampText
    }
}
