import ConfluxVocabulary

/// A range of keys, from the first up to, but not including, the end.
package struct EtcdRange: Sendable {
    package var first: String
    /// nil for a range of one key.
    package var end: String?

    static func key(_ key: String) -> EtcdRange { EtcdRange(first: key) }

    /// All keys that begin with a prefix, which ends with `/`.
    static func below(_ prefix: String) -> EtcdRange {
        EtcdRange(first: prefix, end: after(prefix))
    }

    /// The smallest text after all keys with a prefix, which ends with `/`.
    static func after(_ prefix: String) -> String { String(prefix.dropLast()) + "0" }
}

/// A transaction of etcd: comparisons, the operations if all of them hold, and the operations otherwise.
package struct EtcdTransaction: Sendable {
    package enum Comparison: Sendable {
        /// The key has this value.
        case value(String, Bytes)
        /// There is no key in the range.
        case absent(EtcdRange)
    }

    package enum Operation: Sendable {
        case read(EtcdRange, limit: Int = 0, keysOnly: Bool = false, revision: UInt64 = 0)
        case put(String, Bytes)
        case delete(EtcdRange)
    }

    package var comparisons: [Comparison] = []
    package var success: [Operation]
    package var failure: [Operation] = []

    /// Whether the transaction was applied, judging by what its failure branch reads: every key that it reads
    /// and that the success branch puts has the value that was put. At least one such value must be unique to
    /// the transaction.
    func stands(in answer: EtcdAnswer) -> Bool {
        var isRead = false
        for case .put(let key, let value) in success {
            let index = failure.firstIndex {
                if case .read(let range, _, _, _) = $0 { range.first == key } else { false }
            }
            guard let index else { continue }
            guard answer.pair(index)?.value == value else { return false }
            isRead = true
        }
        return isRead
    }

    func encoded() -> [UInt8] {
        let size = success.reduce(256) { sum, operation in
            if case .put(_, let value) = operation { sum + value.count + 128 } else { sum }
        }
        var writer = ProtobufWriter(reservingBytes: size)
        for comparison in comparisons { writer.put(1) { Self.write(comparison, to: &$0) } }
        for operation in success {
            if case .put(let key, let value) = operation {
                // Large values are copied only once.
                writer.put(2, 2, Array(key.utf8), as: 1, value, as: 2)
            } else {
                writer.put(2) { Self.write(operation, to: &$0) }
            }
        }
        for operation in failure { writer.put(3) { Self.write(operation, to: &$0) } }
        return writer.bytes
    }

    private static func write(_ comparison: Comparison, to writer: inout ProtobufWriter) {
        switch comparison {
        case .value(let key, let value):
            writer.put(3 as UInt64, as: 2)
            writer.put(key, as: 3)
            writer.put(value, as: 7)
        case .absent(let range):
            // Version 0 means that the key does not exist.
            writer.put(range.first, as: 3)
            if let end = range.end { writer.put(end, as: 64) }
        }
    }

    private static func write(_ operation: Operation, to writer: inout ProtobufWriter) {
        switch operation {
        case .read(let range, let limit, let keysOnly, let revision):
            writer.put(1) { inner in
                inner.put(range.first, as: 1)
                if let end = range.end { inner.put(end, as: 2) }
                inner.put(UInt64(limit), as: 3)
                inner.put(revision, as: 4)
                inner.put(keysOnly, as: 8)
            }
        case .put(let key, let value):
            writer.put(2) { inner in
                inner.put(key, as: 1)
                inner.put(value, as: 2)
            }
        case .delete(let range):
            writer.put(3) { inner in
                inner.put(range.first, as: 1)
                if let end = range.end { inner.put(end, as: 2) }
            }
        }
    }
}

/// A key and its value.
package struct EtcdPair: Sendable {
    package var key: String
    package var value: Bytes

    package init(_ key: String, _ value: Bytes) {
        self.key = key
        self.value = value
    }

    init(_ message: Bytes) throws(ProtobufFields.Malformed) {
        let fields = try ProtobufFields(message)
        guard let key = try? String(utf8: fields.bytes(1)) else {
            throw ProtobufFields.Malformed()
        }
        self.init(key, fields.bytes(5))
    }
}

/// The answer to a transaction.
package struct EtcdAnswer: Sendable {
    /// The cluster's revision at that time.
    package var revision: UInt64 = 0
    /// Whether all comparisons held.
    package var succeeded = false
    /// The pairs that each operation found; empty for operations that don't read.
    package var pairs: [[EtcdPair]] = []

    package init(revision: UInt64, succeeded: Bool, pairs: [[EtcdPair]]) {
        self.revision = revision
        self.succeeded = succeeded
        self.pairs = pairs
    }

    init(_ message: Bytes) throws(ProtobufFields.Malformed) {
        let fields = try ProtobufFields(message)
        revision = try fields.message(1).number(3)
        succeeded = fields.number(2) != 0
        for response in fields.all(3) {
            let range = try ProtobufFields(response).message(1)
            pairs.append(
                try range.all(2).map { (pair) throws(ProtobufFields.Malformed) in
                    try EtcdPair(pair)
                })
        }
    }

    /// The first pair that an operation found.
    func pair(_ operation: Int) -> EtcdPair? {
        operation < pairs.count ? pairs[operation].first : nil
    }
}
