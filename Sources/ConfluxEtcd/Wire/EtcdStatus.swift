import ConfluxVocabulary

/// What a member of etcd reports of itself.
package struct EtcdStatus: Sendable, Equatable {
    /// The size of its file.
    package var fileBytes: UInt64 = 0
    /// How many bytes of the file are in use.
    package var usedBytes: UInt64 = 0
    /// The quota for the file, from etcd 3.6 on; 0 in older versions.
    package var quotaBytes: UInt64 = 0
    /// Whether it leads the others.
    package var isLeader = false
    /// Whether the alarm `NOSPACE` is on, for any member: then etcd refuses all writes.
    package var isAlarmed = false
    /// The revision of the last change.
    package var revision: UInt64 = 0

    package init() {}

    init(_ message: Bytes) throws(ProtobufFields.Malformed) {
        let fields = try ProtobufFields(message)
        let header = try fields.message(1)
        revision = header.number(3)
        fileBytes = fields.number(3)
        // A cluster without a leader says 0, which is no member's id.
        isLeader = fields.has(4) && header.number(2) == fields.number(4)
        isAlarmed = fields.all(8).contains { String(shown: $0).contains("NOSPACE") }
        usedBytes = fields.number(9)
        quotaBytes = fields.number(12)
    }
}

/// A member of etcd, and what it reports of itself.
package struct EtcdMember: Sendable, Equatable {
    /// `host:port`.
    package var address: String
    package var status: EtcdStatus

    package init(_ address: String, _ status: EtcdStatus) {
        self.address = address
        self.status = status
    }
}
