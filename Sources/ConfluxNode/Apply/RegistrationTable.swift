import ConfluxProtocol

/// The registrations, open or not. They are found by the request that opened them, which the
/// machine repeats when it opens them again, and by their subject.
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

    /// - Returns: The registrations of a subject.
    mutating func remove(_ subject: HostingSubject) -> [Entry] {
        (requests.removeValue(forKey: subject) ?? []).compactMap {
            entries.removeValue(forKey: $0)
        }
    }

    /// - Returns: All registrations.
    mutating func removeAll() -> [Entry] {
        defer { self = RegistrationTable() }
        return entries.sorted { $0.key < $1.key }.map(\.value)
    }
}
