import ConfluxVocabulary

@testable import ConfluxProtocol

extension SequencerMachine {
    /// Checks every bound of the settings, and every invariant that is cheap to check (P7).
    mutating func checkBounds() {
        for bound in bounds { require(bound.level <= bound.most, "\(bound)") }
        let rejoining = joining.keys.count { sessions.incarnation(of: $0) != nil }
        require(
            sessions.lastingCount + joining.count - rejoining <= settings.sessionsMax,
            "\(sessions.lastingCount) sessions and \(joining.count - rejoining) to come")
        require(rejoining <= sessions.count, "\(rejoining) rejoin")
        require(
            connections.observers.total <= settings.observersMax,
            "\(connections.observers.total) observers")
        require(
            connections.all.count <= sessions.count + connections.observers.total,
            "\(connections.all.count) connections")
        require(
            directory.storeCount <= settings.storesMax,
            "\(directory.lives.count) stores and \(directory.beginnings.count) to come")
        let firstBytes =
            directory.lives.lives.values.reduce(0) { $0 + $1.record.initialBytes }
            + directory.beginnings.values.reduce(0) { $0 + $1.initial.bytes.count }
        require(
            firstBytes <= settings.initialStatesBytesMax, "\(firstBytes) bytes of first states")
        require(
            firstBytes == directory.initialBytes.total,
            "\(directory.initialBytes.total) are counted")
        require(directory.states.count <= settings.statesMax, "\(directory.states.count) states")
        require(questions.count <= settings.questionsMax, "\(questions.count) questions")
        require(inquiries.count <= 2 * settings.sessionsMax, "\(inquiries.count) inquiries")
        require(reads.underWay <= settings.readsMax, "\(reads.underWay) reads")
        require(reads.longest <= ReadQueue.perConnectionMax, "\(reads.longest) reads wait")
        for session in sessions.all { check(session) }
        if let deadline = nextDeadline {
            require(deadline <= publishedAt + settings.beatInterval, "the beat is late")
        }
    }

    private func check(_ session: Session) {
        let ledger = session.ledger
        require(
            ledger.settled <= ledger.announced && ledger.announced <= ledger.lastCounter,
            "\(ledger)")
        require(ledger.pendingBytes <= Int(settings.windowBytes), "\(ledger)")
        // One more batch, whose entries all have separate outcomes in the worst case.
        require(
            ledger.recordCount <= settings.unsettledOutcomesMax + 64,
            "\(ledger.recordCount) outcomes of \(session.incarnation)")
        if let hosting = directory.hosting[session.incarnation] {
            require(
                hosting.stores.allSatisfy {
                    directory.life(of: $0)?.work.hosts[session.incarnation] != nil
                }, "\(session.incarnation) hosts what is not there")
            require(
                hosting.states.allSatisfy {
                    directory.states[$0]?.bridges[session.incarnation] != nil
                }, "\(session.incarnation) bridges what is not known")
            require(session.presence == .live, "\(session.incarnation) has left, and hosts")
        }
        guard let connection = session.connection else { return }
        require(session.presence == .live, "\(session.incarnation) has left and is connected")
        require(
            connections[connection] == .member(session.incarnation),
            "\(session.incarnation) is reached by another's connection")
    }
}
