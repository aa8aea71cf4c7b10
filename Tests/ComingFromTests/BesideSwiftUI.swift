import Conflux
import LikeSwiftUI
import Testing

/// A file that imports a module with SwiftUI's names beside Conflux, and means both.
private struct MixedScreen {
    @LikeSwiftUI.State var draft = 3
    var animation = LikeSwiftUI.Transaction()

    final class Likes: Conflux.State {
        typealias Action = Int
        struct Mutations: Conflux.Mutations {
            func commit(action: Int, state: Likes) { state.count.value += action }
        }
        let count = Variable(0)
    }

    func resolve(_ transaction: Conflux.Transaction) -> DispatchHandle { transaction.react() }
}

struct BesideSwiftUITests {
    @Test func `a file with SwiftUI's names qualifies them, and needs no other name of Conflux`()
        throws
    {
        var screen = MixedScreen()
        screen.draft += 1
        screen.animation.isContinuous = true
        #expect(screen.draft == 4 && screen.animation.isContinuous)
        // Other names are not ambiguous.
        let likes = MixedScreen.Likes()
        MixedScreen.Likes.Mutations().commit(action: screen.draft, state: likes)
        #expect(likes.count.value == 4)
    }
}
