import { zeroWidthSpace } from './links.ts'

/*
 * Words that a server or a bot obeys where a comment, a title or a commit has them. Doorward writes with the rights of
 * its login, so a bot would obey the author of the text that the agent read. A space that no one sees breaks each.
 */

/** Words that begin a line, with where they are documented; a bot named by `@` is no longer named. */
const lineWords = [
  // runatlantis.io/docs/using-atlantis
  '(?:atlantis|run)[ \\t]+(?:plan|apply|unlock|version|import|state|approve_policies|help)',
  // bors.tech/documentation
  'bors\\b',
  // zuul-ci.org/docs/zuul, "trigger" by comments; docs.openstack.org/infra/manual/developers.html
  '(?:recheck|reverify|retest|rebuild|regate)\\b',
  // github.com/jenkinsci/ghprb-plugin; docs.buildkite.com; github.com/elastic/buildkite-pr-bot
  '(?:jenkins|buildkite)\\b',
  // forge.rust-lang.org/triagebot/pr-assignment.html
  'r\\?',
  // pullapprove.com and others count it
  'lgtm[ \\t.!]*$',
  // git-scm.com/docs/git-interpret-trailers; docs.mergify.com/merge-queue (Depends-On); docs.github.com "Skipping workflow runs"
  '(?:signed-off-by|co-authored-by|reviewed-by|acked-by|approved-by|tested-by|change-id|depends-on|skip-checks):',
]

const lineWord = new RegExp(`^([\\s>*+_~#-]*)(?:${lineWords.join('|')})`, 'i')

/**
 * `/approve` of Prow (docs.prow.k8s.io/docs/components/plugins) and of many workflows, quick actions of GitLab
 * (docs.gitlab.com/user/project/quick_actions): a word behind a slash that is no path. Some look for it anywhere.
 */
const slashWord = /(?<![^\s"'(*_~>-])(?<!\]\()\/(?=[A-Za-z](?![\w-]*\/))/g
const bangWord = /^([\s>*+_-]*!)(?=[A-Za-z][\w-]*(?:\s|$))/

/** Phrases that count anywhere (github.com/jenkinsci/ghprb-plugin): no mark between the words ends them. */
const phrases =
  /\b(ok\W{1,9}to\W{1,9}t(?=est\b)|(?:re)?test\W{1,9}this\W{1,9}p(?=lease\b)|add\W{1,9}to\W{1,9}w(?=hitelist\b))/gi

/** `[skip ci]`, `[ci skip]`, `[no ci]` (docs.github.com "Skipping workflow runs"; docs.gitlab.com/ci/pipelines). */
const skipWord = /\[(?=[\w -]{0,20}\b(?:skip|no)\b[\w -]{0,20}\])/gi

const reference =
  '[*_~("\'<\\[\\u200b]{0,4}(?:issues?[ \\t]+)?(?:#|&#|&num|GH-|[A-Z][A-Z0-9_]{1,30}-\\d|https?:|www|!\\d|\\[|[\\w.-]{1,100}(?:\\/[\\w.-]{1,100}){1,20}(?:#|!|&#))'

/**
 * Words that close what is named behind them (docs.github.com "Linking a pull request to an issue" and "Marking issues
 * or pull requests as a duplicate"; docs.gitlab.com/administration/issue_closing_pattern).
 */
const closing = new RegExp(
  `\\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?|reopen(?:s|ed|ing)?|duplicate of|depends[- ]on|blocked by)(?=:?\\s{1,9}${reference})`,
  'gi',
)

/** Text of one line that no bot obeys, and that closes nothing. */
export const breakCommands = (line: string): string =>
  breakClosing(line)
    .replace(lineWord, (found, before: string) => breakWord(found, before.length))
    .replace(slashWord, `/${zeroWidthSpace}`)
    .replace(bangWord, `$1${zeroWidthSpace}`)
    .replace(phrases, `$1${zeroWidthSpace}`)
    .replace(skipWord, `[${zeroWidthSpace}`)

/** Also for code that may become a message of a commit, which has no code. */
export const breakClosing = (text: string): string =>
  text.replace(closing, (word) => breakWord(word))

const breakWord = (text: string, at = 0): string =>
  `${text.slice(0, at + 1)}${zeroWidthSpace}${text.slice(at + 1)}`

const codeSlash = /^(\s*\/)(?=[A-Za-z][\w-]*(?:[ \t]|$))/
const codeWord =
  /^(\s*)(b)(?=ors[ :])|^(\s*)(@)(?=(?:dependabot|mergify(?:io)?|bors|homu|renovate(?:bot)?|rustbot|k8s-(?:ci-robot|bot))\b)/i

/** A line of code, which bots read too that look at each line: without what begins a command. */
export const breakCodeCommand = (line: string): string =>
  line
    .replace(codeSlash, `$1${zeroWidthSpace}`)
    .replace(codeWord, (found) => found + zeroWidthSpace)
