import Foundation

exit(await Tool.run())
