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

    init(_ message: Bytes) throws(ProtobufReader.Malformed) {
        var reader = ProtobufReader(message)
        var (member, leader): (UInt64, UInt64) = (0, 1)
        while let (field, value) = try reader.next() {
            switch (field, value) {
            case (1, .bytes(let header)):
                var header = ProtobufReader(header)
                while let (field, value) = try header.next() {
                    switch (field, value) {
                    case (2, .number(let number)): member = number
                    case (3, .number(let number)): revision = number
                    default: break
                    }
                }
            case (3, .number(let number)): fileBytes = number
            case (4, .number(let number)): leader = number
            case (8, .bytes(let text)):
                if String(shown: text).contains("NOSPACE") { isAlarmed = true }
            case (9, .number(let number)): usedBytes = number
            case (12, .number(let number)): quotaBytes = number
            default: break
            }
        }
        isLeader = member == leader
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

/// An alarm of etcd.
struct EtcdAlarm: Equatable {
    /// The id of the member that raised it.
    var member: UInt64
    /// Whether it is `NOSPACE`.
    var isNoSpace: Bool

    /// Reads the answer to a request for all alarms.
    static func all(in message: Bytes) throws(ProtobufReader.Malformed) -> [EtcdAlarm] {
        var alarms: [EtcdAlarm] = []
        var reader = ProtobufReader(message)
        while let (field, value) = try reader.next() {
            guard field == 2, case .bytes(let bytes) = value else { continue }
            var alarm = EtcdAlarm(member: 0, isNoSpace: false)
            var inner = ProtobufReader(bytes)
            while let (field, value) = try inner.next() {
                switch (field, value) {
                case (1, .number(let number)): alarm.member = number
                case (2, .number(let kind)): alarm.isNoSpace = kind == 1
                default: break
                }
            }
            alarms.append(alarm)
        }
        return alarms
    }
}
