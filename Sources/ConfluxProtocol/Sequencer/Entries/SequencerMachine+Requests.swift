import ConfluxVocabulary

/// An entry for the log itself: it sets a timer, or claims a lease.
enum LogRequest: Sendable, Equatable {
    case timer(TimerRequest)
    case lease(LeaseRequest)

    /// Whether entries for a target are for the log itself.
    static func isFor(_ target: Target) -> Bool { target == .timers || target == .leases }

    /// Reads the payload of an entry.
    ///
    /// - Returns: nil if the entry is for stores.
    init?(_ target: Target, _ payload: Bytes) throws(WireError) {
        switch target {
        case .timers: self = .timer(try TimerRequest(payload: payload))
        case .leases: self = .lease(try LeaseRequest(payload: payload))
        default: return nil
        }
    }
}

/// A request, and the place of its entry in a batch, from 0.
typealias PlacedRequest = (place: UInt64, request: LogRequest)

extension Batch {
    /// Whether it has entries for the log itself, or needs a lease.
    var hasRequests: Bool { targets.contains { LogRequest.isFor($0.target) } }

    /// What its entries ask of the log itself.
    func requests() throws(WireError) -> [PlacedRequest] {
        guard hasRequests else { return [] }
        var requests: [PlacedRequest] = []
        var place: UInt64 = 0
        try forEachEntry { (row, payload) throws(WireError) in
            if let request = try LogRequest(targets[row].target, payload) {
                requests.append((place, request))
            }
            place += 1
        }
        return requests
    }
}

extension SequencerMachine {
    /// Judges what the entries of a batch ask of the log itself.
    ///
    /// - Parameters:
    ///   - batch: A validated batch.
    ///   - session: Who sent it.
    ///   - principal: The key of its connection.
    ///   - requests: Receives the requests.
    /// - Returns: Why the batch can't be admitted; nil if nothing of this speaks against it.
    mutating func readRequests(
        of batch: Batch, by session: Incarnation, as principal: Principal,
        into requests: inout [PlacedRequest]
    ) -> Fault? {
        guard batch.hasRequests else { return nil }
        guard batch.isAtomic,
            batch.targets.allSatisfy({
                $0.target != .leases || $0.life == $0.unchangedSince?.sequence ?? .zero
            })
        else {
            return Fault(
                code: .malformed,
                message:
                    "timers and leases need an atomic batch, and a row names a claim as its condition"
            )
        }
        do throws(WireError) {
            requests = try batch.requests()
        } catch {
            return Fault(code: .malformed, message: error.message)
        }
        var (count, bytes, claims) = (0, 0, 0)
        for index in requests.indices {
            let fault: Fault?
            switch requests[index].request {
            case .timer(var request):
                fault = judge(&request, for: principal, besideCount: &count, bytes: &bytes)
                requests[index].request = .timer(request)
            case .lease(let request):
                fault = self.fault(of: request, behind: claims, by: session, as: principal)
                if case .claim = request { claims += 1 }
            }
            if let fault { return fault }
        }
        return nil
    }

    /// The entries of a batch are admitted.
    ///
    /// - Parameters:
    ///   - requests: What they ask of the log itself.
    ///   - first: The number of the batch's first entry.
    ///   - session: Who sent it.
    ///   - owner: The name of the key that sent it; nil if there are no keys.
    mutating func admit(
        _ requests: [PlacedRequest], from first: SequenceNumber, of session: Incarnation,
        by owner: Name?
    ) {
        for (place, request) in requests {
            let entry = first.advanced(by: place)
            switch request {
            case .timer(let request): admit(request, at: entry, by: owner)
            case .lease(let request): leases.apply(request, at: entry, of: session, by: owner)
            }
        }
    }
}

extension LogState {
    /// Takes what a batch asks of the log itself, or that it is the firing of a timer.
    ///
    /// - Returns: false if no sequencer can have admitted it.
    mutating func take(
        _ batch: Batch, of session: Incarnation, by owner: Name?, at first: SequenceNumber
    ) -> Bool {
        guard batch.hasRequests else {
            if session == .none { timers.fire(SequenceNumber(batch.firstCounter), at: first) }
            return true
        }
        guard let requests = try? batch.requests() else { return false }
        for (place, request) in requests {
            let entry = first.advanced(by: place)
            switch request {
            case .timer(.set(let order)):
                guard order.fault == nil else { return false }
                for row in order.actions.targets { directory.see(row.target, by: owner) }
                timers.set(directory.naming(order), at: entry, by: owner)
            case .timer(let request): timers.apply(request, at: entry, by: owner)
            case .lease(let request): leases.apply(request, at: entry, of: session, by: owner)
            }
        }
        return true
    }
}
