import ConfluxProtocol

/// What is to be hosted or bridged, and what is: by the request that opened it, which the machine names
/// again when it opens it again, and by what it is of.
struct RegistrationTable {
    /// A registration, and whether it is open.
    typealias Entry = (registration: Registration, isOpen: Bool)

    private var entries: [UInt64: Entry] = [:]
    private var requests: [HostingSubject: [UInt64]] = [:]

    subscript(request: UInt64) -> Entry? { entries[request] }

    mutating func add(_ registration: Registration) {
        entries[registration.request] = (registration, isOpen: false)
        requests[registration.subject, default: []].append(registration.request)
    }

    mutating func open(_ request: UInt64) { entries[request]?.isOpen = true }

    /// - Returns: What was registered of a subject.
    mutating func remove(_ subject: HostingSubject) -> [Entry] {
        (requests.removeValue(forKey: subject) ?? []).compactMap {
            entries.removeValue(forKey: $0)
        }
    }

    /// - Returns: All that was registered.
    mutating func removeAll() -> [Entry] {
        defer { self = RegistrationTable() }
        return entries.sorted { $0.key < $1.key }.map(\.value)
    }
}
