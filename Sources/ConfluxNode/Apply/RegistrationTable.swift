import ConfluxProtocol

/// The registrations, open or not, by their requests and by their subjects. When the machine opens one again, it names
/// the same request.
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

    /// - Returns: The registrations of the subject.
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
