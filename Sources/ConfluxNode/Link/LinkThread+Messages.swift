import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Takes what comes from the sequencer, besides the feed.
extension LinkThread {
    func take(_ event: ClientEvent) {
        let isAwaited = !diagnosis.isOver
        if let address = dealer.endpoint {
            diagnosis.take(event, of: address)
            troubles.requests.take(event, of: address)
        }
        switch event {
        case .connected:
            refused.served()
            // Messages on the former connection are lost.
            perform(.reconnected)
        case .failed(let failure, let address):
            if !isAwaited, !failure.isOfKeys { tellTroubles() }
            // The diagnosis reports why a first connection fails, unless the keys are the reason.
            guard !isAwaited || failure.isOfKeys, let reason = refused.take(failure, of: address)
            else { return }
            events(.connectionRefused(message: reason))
        case .connecting, .accepted, .message: break
        }
    }

    func take(_ frame: Bytes) {
        do throws(WireError) {
            let epoch = try Frame.header(of: frame).epoch
            perform(.received(try Frame.decodeSequencerMessage(frame), epoch: epoch))
        } catch {
            unreadable(frame, error)
        }
    }

    /// Takes a frame that can't be read. Every version understands a `bye`. Any other frame of another version
    /// means that the node and the sequencer can't communicate. The rest is reported and ignored.
    private func unreadable(_ frame: Bytes, _ failure: WireError) {
        do throws(WireError) {
            perform(.received(.bye(try Frame.decodeBye(frame)), epoch: machine.epoch))
        } catch {
            guard case .unsupportedVersion = failure else {
                events(.unreadableFrame(failure.message))
                return
            }
            let bye = Bye(code: .version, message: failure.message)
            perform(.received(.bye(bye), epoch: machine.epoch))
        }
    }
}
