import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Changes the authorised keys while the sequencer serves.
extension ServingThread {
    func authorize(_ keys: AuthorizedKeys, askedBy asker: CurvePublicKey?) {
        do throws(ZeroMQError) {
            try access.admit(keys, askedBy: asker, on: [router, feed])
            machine.limit(rates: keys.rates)
        } catch {
            cutOff(error)
        }
    }

    func bar(_ name: Name, for pause: Duration) {
        do throws(ZeroMQError) {
            try access.bar(name, for: pause, on: [router, feed])
        } catch {
            cutOff(error)
        }
    }

    func reload(for asker: KeyReloads.Asker?) {
        guard let answer = reloads.begin(for: asker), let asker else { return }
        perform(.answered(asker.question, by: asker.connection, answer))
    }

    func reloaded(_ outcome: KeyReloads.Outcome) {
        let answer = reloads.end(outcome)
        // The answer goes first: under the new keys the client may not be authorised.
        var key: CurvePublicKey?
        if let asker = outcome.asker {
            key = router.key(of: RoutingID(asker.connection))
            perform(.answered(asker.question, by: asker.connection, answer))
        }
        switch outcome.result {
        case .success(let keys):
            authorize(keys, askedBy: key)
            events(.authorized(count: keys.count))
        case .failure(let error): events(.authorizationFailed(message: error.message))
        }
    }
}
