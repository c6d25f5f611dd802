import assert from 'node:assert/strict'
import { slackText } from '../../../../daemon/delivery/format/mentions.ts'

/** Shows a zero width space as ·. */
const shown = (text: string) => text.replaceAll('\u200b', '·')

describe('slackText', () => {
  for (const [given, wanted] of [
    ['<!channel> <!here> <!everyone>', '<·!channel> <·!here> <·!everyone>'],
    ['<!subteam^S1|x>', '<·!subteam^S1|x>'],
    ['<@U0123> <#C0123>', '<·@U0123> <·#C0123>'],
    ['&lt;!here&gt; &#60;!here> &#x3C;@U1>', '&lt;·!here&gt; &#60;·!here> &#x3C;·@U1>'],
    ['<\\!channel> <\\@U1> &commat;here', '<·\\!channel> <·\\@U1> &commat;·here'],
    ['<&#33;here> <&commat;U1>', '<·&#33;here> <·&commat;U1>'],
    ['`<!here>`\n```\n<!here>\n```', '`<·!here>`\n```\n<·!here>\n```'],
    ['@channel @here @everyone @jane', '@·channel @·here @·everyone @jane'],
    ['a <b> c < d, Array<string>, <!-- x -->', 'a <b> c < d, Array<string>, <!-- x -->'],
    ['<!DOCTYPE html> <https://a.b|c>', '<!DOCTYPE html> <https://a.b|c>'],
    ['**bold** [a](https://b.c) me@example.com', '**bold** [a](https://b.c) me@example.com'],
  ] as const)
    it(`makes ${wanted.replaceAll('\n', '⏎')}`, () => assert.equal(shown(slackText(given)), wanted))
})
