import ConfluxVocabulary

/// Opening and closing of stores: the one place of rule 16.
extension SequencerMachine {
    /// Opens whose `created` entry is not in the log yet. The first opener's state counts.
    struct PendingCreation: Sendable {
        var schemaVersion: UInt32
        var initial: EncodedState
        var openers: [Opener]
    }

    /// Who waits for a store to begin.
    struct Opener: Sendable {
        var incarnation: Incarnation
        var request: UInt64
    }

    /// The most openers that wait for one store to begin. *At the bound*: the open fails with
    /// `tableFull`, and the node may try again.
    private static let openersMax = 1_024

    mutating func open(
        _ open: Open, by incarnation: Incarnation, on connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        if let failure = refusal(of: open) {
            let opened = Opened(
                request: open.request, outcome: .failed(failure.0, message: failure.1))
            effects.append(.send(.opened(opened), to: connection))
            return
        }
        switch open.subject {
        case .state(let state):
            if sessions[incarnation]?.bridged.insert(state).inserted == true {
                directory.addBridge(state)
            }
            let outcome = Opened.Outcome.opened(
                life: .zero, schemaVersion: open.schemaVersion, snapshot: nil)
            effects.append(
                .send(.opened(Opened(request: open.request, outcome: outcome)), to: connection))
        case .store(let name):
            if let store = directory.store(name) {
                host(store, named: name, for: incarnation, request: open.request, into: &effects)
            } else if creating[name] != nil {
                creating[name]?.openers.append(
                    Opener(incarnation: incarnation, request: open.request))
            } else {
                creating[name] = PendingCreation(
                    schemaVersion: open.schemaVersion, initial: open.initial,
                    openers: [Opener(incarnation: incarnation, request: open.request)])
                directory.expect(name, initial: open.initial)
                pipeline.admit(
                    .created(name, schemaVersion: open.schemaVersion, initial: open.initial),
                    then: .created(name))
            }
        }
    }

    private func refusal(of open: Open) -> (RejectionCode, String)? {
        let isFull = (
            RejectionCode.tableFull,
            "the sequencer knows as many stores as it may; close and drop some, or raise its limit"
        )
        switch open.subject {
        case .state(let state):
            let isNew = !directory.knows(state: state)
            return isNew && directory.stateCount >= settings.statesMax ? isFull : nil
        case .store(let name):
            if let store = directory.store(name) {
                return versionMismatch(open.schemaVersion, store.schemaVersion, name)
            }
            if let pending = creating[name] {
                if pending.openers.count >= Self.openersMax { return isFull }
                return versionMismatch(open.schemaVersion, pending.schemaVersion, name)
            }
            let bytes = open.initial.bytes.count
            if bytes > Int(settings.initialStateBytesMax) {
                return (
                    .payloadTooLarge,
                    "the first state of \(name) has \(bytes) bytes and the limit is "
                        + "\(settings.initialStateBytesMax)"
                )
            }
            let isFullOfStores = directory.stores.count + creating.count >= settings.storesMax
            let isFullOfBytes = directory.initialBytes + bytes > settings.initialStatesBytesMax
            let isFullOfCommit = !pipeline.hasRoom(bytes: bytes)
            let isFullOfStates =
                !directory.knows(state: name.state) && directory.stateCount >= settings.statesMax
            return isFullOfStores || isFullOfBytes || isFullOfCommit || isFullOfStates
                ? isFull : nil
        }
    }

    private func versionMismatch(
        _ asked: UInt32, _ present: UInt32, _ name: StoreName
    ) -> (RejectionCode, String)? {
        guard asked != present else { return nil }
        return (
            .schemaVersion,
            "\(name) has schema version \(present) and this node has \(asked): "
                + "run the same version of the state everywhere"
        )
    }

    private mutating func host(
        _ store: StoreDirectory.Store, named name: StoreName, for incarnation: Incarnation,
        request: UInt64, into effects: inout [SequencerEffect]
    ) {
        sessions[incarnation]?.hosted[name] = HostedStore(
            store: name, life: store.life, schemaVersion: store.schemaVersion)
        guard let connection = sessions[incarnation]?.connection else { return }
        let outcome = Opened.Outcome.opened(
            life: store.life, schemaVersion: store.schemaVersion,
            snapshot: Snapshot(sequence: store.life, state: store.initial))
        effects.append(
            .send(.opened(Opened(request: request, outcome: outcome)), to: connection))
    }

    /// The `created` entry is in the log: the store's life begins, and its openers are answered.
    mutating func created(
        _ name: StoreName, at sequence: SequenceNumber, into effects: inout [SequencerEffect]
    ) {
        guard let pending = creating.removeValue(forKey: name) else {
            preconditionFailure("\(name) was created without an opener")
        }
        let store = StoreDirectory.Store(
            life: sequence, schemaVersion: pending.schemaVersion, initial: pending.initial)
        directory.begin(store, named: name)
        effects.append(.note(.created(name, life: sequence)))
        for opener in pending.openers where sessions[opener.incarnation]?.presence == .live {
            host(
                store, named: name, for: opener.incarnation, request: opener.request,
                into: &effects)
        }
    }

    mutating func endHosting(of subject: HostingSubject, by incarnation: Incarnation) {
        switch subject {
        case .store(let name):
            sessions[incarnation]?.hosted[name] = nil
            creating[name]?.openers.removeAll { $0.incarnation == incarnation }
        case .state(let state):
            if sessions[incarnation]?.bridged.remove(state) != nil {
                directory.removeBridge(state)
            }
        }
    }

    /// Takes a hello's word for what its node hosts: hosting is no entry.
    mutating func restateHosting(_ hello: Hello, of incarnation: Incarnation) {
        endHosting(by: incarnation)
        for hosted in hello.hosted where directory.store(hosted.store)?.life == hosted.life {
            sessions[incarnation]?.hosted[hosted.store] = hosted
        }
        for state in hello.bridged {
            guard
                directory.knows(state: state) || directory.stateCount < settings.statesMax,
                sessions[incarnation]?.bridged.insert(state).inserted == true
            else { continue }
            directory.addBridge(state)
        }
    }

    /// A node that is not present hosts nothing.
    mutating func endHosting(by incarnation: Incarnation) {
        for state in sessions[incarnation]?.bridged ?? [] { directory.removeBridge(state) }
        sessions[incarnation]?.bridged = []
        sessions[incarnation]?.hosted = [:]
    }
}
