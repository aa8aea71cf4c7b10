import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// The text of entries that claim and release leases.
enum LeaseText {
    /// What such an entry says; nil if the entry is another one, or its payload is hidden or can't be read.
    static func request(_ payload: Bytes, _ target: Target) -> LeaseRequest? {
        guard target == .leases else { return nil }
        return try? LeaseRequest(payload: payload)
    }

    /// What people read.
    static func words(_ request: LeaseRequest) -> String {
        switch request {
        case .claim(let name, locks: false): "lease claimed: \(name)"
        case .claim(let name, locks: true): "lock claimed: \(name)"
        case .release(let claim): "lease released: the claim \(claim.sequence)"
        }
    }

    /// The same as JSON on one line.
    static func json(_ request: LeaseRequest) -> Bytes {
        let fields: JSONFields =
            switch request {
            case .claim(let name, locks: false): ["claim": name]
            case .claim(let name, locks: true): ["claim": name, "locks": true]
            case .release(let claim): ["release": claim.sequence]
            }
        return Array(JSONObject(fields).json.description.utf8)[...]
    }
}
