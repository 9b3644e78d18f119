"""The plots of the corpus: each is a small chain of cause and effect around the hero of a Story."""

from __future__ import annotations

from story import Story
from words import (ACCIDENTS, ADVICE, BAKES, BUILDS, FEARS, FRUITS, HIDING_PLACES, NOISES, RESCUES,
                   SEEDS, SKILLS, THIEVES, TREASURES, WISHES)

GLAD = "{smiled|laughed|clapped [his] hands|jumped for joy|was very happy|felt warm inside}"


def open_story(s: Story) -> None:
    """Introduces the hero; every later sentence may use [hero] and the pronouns."""
    s.slot["who"] = s.expand("{a|a little|a [trait]|a [trait] little|a young} [kid]")
    s.slot["home"] = s.choice(("in a small house near the [place]", "in a little village", "at the edge of the [place]",
                               "in a house with a red door", "not far from the [place]", "on a quiet street"))
    if s.nameless:
        s.add("Once upon a time, there was {a|a little|a [trait]} [kid].", "There was once {a|a little|a [trait]} [kid] who lived [home].",
              "[hero] {woke up early|lived [home]|was at the [place]}.", "[hero] was {sad|bored} because {nobody wanted to play|it was a gray day|[his] friends were far away}.",
              "[hero] was {happy|excited} because {the sun was shining|it was the first day of spring|[his] [mom] had made [food]}.")
    else:
        s.add("Once upon a time, there was [who] {named|called} [hero].",
              "Once upon a time, [who] named [hero] lived [home].",
              "One day, [who] {named|called} [hero] woke up early.",
              "There once was [who] named [hero].",
              "[hero] was [who] who lived [home].",
              "[hero] was [who].",
              "Once there was [who] named [hero], who lived with [his] [mom] [home].",
              "Long ago, [who] named [hero] lived [home].",
              "[hero] {was at the [place]|woke up early|was at home|went to the [place] with [his] [mom]}.",
              "[hero] was {sad|bored} because {there was nothing to do|it was a gray day|all [his] friends were away}.",
              "[hero] was {happy|excited} because {the sun was shining|it was the first day of spring|[his] [mom] had made [food]}.")
    s.maybe(0.6, "[he] loved to {play at the [place]|sing|draw|look at the clouds|run and jump|read books|help [his] [mom]}.",
            "[he] liked {to play outside|to ask questions|to make new friends|sunny days|stories about far away places}.",
            "[he] was always {ready to help|full of ideas|looking for something to do}.",
            "[hero] lived with [his] [mom].",
            "The sun was {shining|warm}, and the birds {sang|were singing}.",
            "[he] had a {small|big|soft} bed, a {red|blue|green} {hat|coat|bag} and many {books|toys|friends}.",
            "Everyone {knew|said} that [hero] was {very |}[trait].")


def open_pair(s: Story) -> None:
    """Introduces both children at once, for the plots in which they know each other."""
    s.friends = True
    s.add("[hero] and [pal] {were {good|best|old} friends|were always together|lived on the same street}.",
          "[hero] and [pal] {went to the [place]|played at the [place]|were at the [place]|met at the [place]}.",
          "Once upon a time, there were two friends named [hero] and [pal].", "[hero] and [his] friend [pal] {loved to play together|did everything together}.",
          "Once upon a time, [hero] and [pal] {were friends|lived near the [place]}.", "One day, [hero] and [his] friend [pal] {went to the [place]|were playing}.")
    s.maybe(0.5, "They {played every day|liked to run and jump|loved to laugh}.", "The sun was {shining|warm}, and they {were happy|felt good}.",
            "[hero] was {very |}[trait], and [pal] was {funny|brave|clever}.", "[hero] lived with [his] [mom].")


def meet_pal(s: Story) -> None:
    if s.friends:
        return
    s.friends = True
    if s.animal:
        s.add("[his] best friend was a [palkid] named [pal].", "[he] had a good friend, a [palkid] named [pal].",
              "[hero] often played with a [palkid] named [pal].")
    else:
        s.add("[his] best friend was a [palkid] named [pal].", "[he] had a {good|dear|close} friend named [pal].",
              "[hero] and [his] friend [pal] did everything together.", "[he] often played with [pal], who lived next door.")


def one_day(s: Story) -> str:
    return s.expand("{One day|One morning|One {sunny|warm|cool|windy} {day|morning|afternoon}|One [weather] day|"
                    "On a [weather] {day|morning}|Early one morning|After lunch one day}")


def close(s: Story, *lessons: str) -> None:
    """The ending: a lesson of the plot or a plain close."""
    s.maybe(0.6, *lessons)
    s.add("The end.", "", "And they all lived happily ever after.", "That night, [hero] {fell asleep|slept} with a smile.",
          "It was the best day {ever|of all}.", "[hero] never forgot that day.", "", "From that day on, [hero] was {even happier|a little wiser}.",
          "[He] went home {tired but happy|with a big smile|in time for dinner}.", "Then it was time for dinner, and they had [food].")


def lost_thing(s: Story) -> None:
    s.slot["thing"] = s.choice(("[adj] [toy]", "[toy]"))
    (found, cause), places = s.choice(THIEVES), s.rng.sample(HIDING_PLACES, 3)
    s.slot.update(found=found, cause=cause)
    s.add("[he] had a [adj] [toy]. It was [his] favorite {toy|thing}{| in the world}.",
          "[his] favorite {toy|thing} was a [adj] [toy].", "For [his] birthday, [he] got a [adj] [toy] from [his] [mom]. [He] took it everywhere.",
          "Every night, [hero] put [his] [adj] [toy] next to the bed.")
    s.add(f"{one_day(s)}, the [toy] was gone{{!|.}}", f"{one_day(s)}, [hero] {{could not find the [toy]|looked for the [toy], but it was not there}}.",
          f"But {one_day(s).lower()}, [he] {{saw that the [toy] was missing|reached for the [toy] and it was not there}}.")
    s.add('"Oh no! Where is my [toy]?" {[he] cried|cried [hero]|[hero] said|[he] asked}.', "[hero] was {very |so |}sad and began to {cry|look for it}.",
          '"My [toy] is lost!" [he] {said with tears in [his] eyes|told [his] [mom]}.', "[he] {felt sad|was worried} and did not want to play.")
    helper = s.choice(("mom", "pal"))
    s.slot.update(help=s.expand("[his] [mom]" if helper == "mom" else "[pal]"), helphe=s.slot[helper + "he"])
    if helper == "pal":
        meet_pal(s)
    s.add('"{Do not worry|Do not cry|Let us look together|I will help you find it}," said [help].', "[help] {came to help|heard this and came to help|said they should look together}.",
          '[help] asked, "Where did you {see it last|play with it}?"')
    s.para()
    for i, (where, what) in enumerate(places[: s.choice((1, 2, 2, 3))]):
        first = ("First, they looked", "They looked", "[hero] looked")[s.rng.randrange(3)] if i == 0 else \
            ("Then they looked", "Next, they looked", "They looked")[s.rng.randrange(3)]
        s.slot.update(where=where, what=what)
        s.add(f"{first} [where], but {{there was only [what]|they only found [what]|all they saw was [what]}}.",
              f"{first} [where]. {{There was [what], but no [toy]|They found [what], but not the [toy]}}.")
    s.add("At last, they {found the [toy]|saw the [toy]} [found]!", "Then [hero] saw something [adj]. It was the [toy], [found]!",
          'Then [help] {pointed and said|shouted}, "Look!" The [toy] was [found].')
    s.add("[cause].")
    s.add(f"[hero] {GLAD}.", "[hero] {hugged|held} the [toy] {tight|and smiled}.")
    s.maybe(0.7, '"Thank you for {helping me|your help}," [he] said{| to [help]}.', "[he] gave [help] a big hug.")
    close(s, "From then on, [hero] always put the [toy] in a safe place.", "[hero] learned that {it is easier to look together|a friend makes every search shorter}.",
          "[he] {promised|decided} to take better care of [his] things.")


def rescue(s: Story) -> None:
    kind, trouble, cure, reward = s.choice(RESCUES)
    s.slot.update(beast=kind, trouble=trouble, cure=cure, reward=reward)
    s.add(f"{one_day(s)}, [hero] {{went for a walk|was walking|was playing}} {{near|by}} the [place].",
          f"{one_day(s)}, [he] {{walked|went}} to the [place] {{with [his] [mom]|to play|all alone}}.")
    s.add("[he] heard a {small|sad|soft|tiny} {sound|cry}.", "Something {moved|made a sound} in the grass.", "Suddenly, [he] stopped and {listened|looked}.")
    s.add("It was a {little|small|tiny} [beast] that [trouble].", "There [he] saw a {little|small|poor} [beast]. It [trouble].")
    s.add('"{Oh, you poor thing|Do not be afraid|Poor little [beast]}," {said [hero]|[he] said}. "I will {help you|take care of you}."',
          "The [beast] {looked at [him] with big eyes|was scared and did not move}. [hero] wanted to help.",
          '"Can you help me?" {said|asked} the [beast]. "{Of course|Yes, I can}," said [hero].')
    s.maybe(0.5, "At first [he] did not know what to do.", "[he] thought {for a moment|hard}. Then [he] had an idea.", "[he] {called|ran to get} [his] [mom].")
    s.para()
    s.add("[hero] [cure].", "{Very slowly|Gently|With a little help}, [he] [cure].", "So [he] [cure].")
    s.add("Soon the [beast] {was well again|was safe|felt much better}.", "{After a while|Before long}, the [beast] was {happy and safe|fine}.",
          '"Thank you, [hero]," said the [beast]. "I will never forget you."')
    s.maybe(0.6, "The [beast] {looked back once|made a happy sound} and went {home|on its way}.", f"[hero] {GLAD}.")
    s.add("{After that|From that day on}, the [beast] and [hero] were {friends|good friends|the best of friends}.",
          "The [beast] did not forget.", "{A week later|Some days later}, the [beast] came back.")
    s.add("It [reward].", "To say thank you, it [reward].")
    close(s, "[hero] learned that {a kind act always comes back|even small friends can do big things|it is good to help}.",
          '"{When you help others, they help you|A little kindness goes a long way}," said [his] [mom].')


def sharing(s: Story) -> None:
    meet_pal(s)
    s.add(f"{one_day(s)}, they {{found|saw}} a [adj] [toy] {{at the [place]|on the path|under a tree}}.",
          f"{one_day(s)}, [hero] brought a [adj] [toy] to the [place], and [pal] wanted to play with it too.")
    s.add('"It is mine!" said [hero]. "No, it is mine!" said [pal].', '"I want to play with it first," said [hero]. "No, me first!" {said|cried} [pal].',
          '"Can I have a turn?" asked [pal]. "No," said [hero], and held the [toy] {tight|behind [his] back}.')
    s.add("They {pulled and pulled|both pulled at the [toy]}{ until it fell in the mud|, and it fell to the ground|. Then there was a crack}.",
          "[pal] {sat down and cried|walked away with a sad face|was hurt and went home}.", "They were {angry|mad} and did not {talk|speak} to each other.")
    s.para()
    s.add("[hero] {sat alone with the [toy]|looked at the [toy]}. It was {not as much fun alone|no fun to play alone|not so nice anymore}.",
          "After a while, [hero] felt {lonely|bad|sorry}. Playing alone was {no fun|boring}.")
    s.maybe(0.6, '[his] [mom] said, "{A toy is more fun when you share it|Friends are better than toys|You can take turns}."',
            "[he] thought about what [pal] must feel.")
    s.add('[hero] went to [pal] and said, "I am sorry. {Let us share.|Do you want to play together?|You can go first.}"',
          'So [he] ran to [pal]. "I am sorry," [he] said. "We can {take turns|share it}."')
    s.add('"{I am sorry too|Thank you|That is kind of you}," said [pal]{, and smiled| with a smile|}.', "[pal] {smiled|nodded} and {took [his] hand|gave [him] a hug}.")
    s.add("They played with the [toy] {together |}{until the sun went down|all afternoon|until dinner}.", "First [pal] had a turn, and then [hero]. They laughed {a lot|all day}.")
    close(s, "They learned that {sharing is fun|it is better to share than to fight|a friend is worth more than a toy}.", "From then on, they always shared {their toys|everything}.")


def fear(s: Story) -> None:
    what, one, two, truth = s.choice(FEARS)
    s.slot.update(fear=what, one=one, two=two, truth=truth)
    s.add("But [hero] was {very |}{afraid|scared} of [fear].", "There was one thing [hero] did not like. [he] was {afraid|scared} of [fear].",
          "[hero] had a secret. [he] was afraid of [fear].")
    s.add("{All the other children laughed|Nobody knew}, and that made [him] {sad|feel small}.", "When [he] thought of [fear], [his] {legs shook|heart beat fast|tummy hurt}.",
          "[he] always {ran away|closed [his] eyes|hid behind [his] [mom]}.")
    s.add(f'{one_day(s)}, [his] [mom] {{said|told [him]}}, "{{Being brave does not mean you are never afraid|You can begin with one small step|We can try it together}}."',
          f'{one_day(s)}, [hero] told [pal] about it. "I was afraid too," said [pal]. "{{Just take one small step|Try a little bit every day}}."')
    s.para()
    s.add("{The first day|First}, [hero] [one].", "So [he] [one].")
    s.add("It was {scary|hard}, but nothing bad happened.", "[his] heart was beating fast, but [he] was {fine|safe}.", '"That was not so bad," [he] said.')
    s.add("{The next day|Then|After that}, [he] [two].")
    s.add("{At last|Then came the big day, and} [hero] took a deep breath and {did it|tried}.", "{On the third day|A week later}, [he] was ready.")
    s.add("[truth].")
    s.add('"I did it!" {shouted|cried|said} [hero].', f"[hero] {GLAD}.", '"{I am not afraid anymore|Look at me|I was brave}!" said [hero].')
    s.add("[his] [mom] {was very proud|gave [him] a big hug}.", '"I knew you could do it," said [his] [mom].', "")
    close(s, "[hero] learned that {being brave means trying even when you are scared|small steps can take you far}.",
          "Now, when {a friend|someone} is afraid, [hero] {holds their hand|says, \"Just take one small step\"}.")


def baking(s: Story) -> None:
    cake, lack, owner = s.choice(BAKES)
    s.slot.update(cake=cake, lack=lack, owner=owner, were="were" if lack.endswith("s") else "was", chore=s.choice(("carry the wood", "sweep the floor", "feed the chickens", "water the plants",
                                                                     "wash the windows", "pick up the leaves")))
    s.slot["chored"] = {"carry": "carried", "sweep": "swept", "feed": "fed", "water": "watered", "wash": "washed",
                        "pick": "picked"}[s.slot["chore"].split()[0]] + " " + s.slot["chore"].split(" ", 1)[1]
    s.add(f"{one_day(s)}, it was the birthday of [his] [mom]. [hero] wanted to {{bake|make}} [cake].",
          "It was almost the birthday of [his] [mom], and [hero] wanted to make [cake] as a surprise.",
          f"{one_day(s)}, [hero] said, \"{{Today|For your birthday}} I will make [cake] for you.\"")
    s.add("[he] looked in the kitchen, but there [were] no [lack].",
          "But when [he] opened the cupboard, the [lack] [were] all gone.")
    s.add('"What can I do?" [he] {thought|said}. "I will ask [owner]."', "[he] put on [his] {shoes|coat|hat} and went to see [owner].")
    s.add('"{Hello|Good morning}! {May|Can} I have some [lack], please?" asked [hero].', "[hero] knocked on the door and asked for some [lack].")
    s.add('"{Yes|Of course}, if you help me [chore]," said [owner].', '"I will give you some [lack]," said [owner], "but first, please help me [chore]."')
    s.para()
    s.add("[hero] {worked hard and |}[chored].", "So [hero] [chored], {and did not complain|and sang while doing it|and it did not take long}.")
    s.add("[owner] was {pleased|happy} and gave [him] {a basket of|some|plenty of} [lack].", '"Well done!" said [owner], and gave [him] the [lack].')
    s.add("[hero] ran home and {mixed everything in a big bowl|began to bake}.", "At home, [he] mixed and stirred and {waited|watched the oven}.")
    s.add("Soon the whole house smelled {sweet|wonderful|good}.", "There was flour on [his] nose and on the cat.", "")
    s.add("When [his] [mom] came home, [momhe] {saw [cake] on the table|could not believe it}.", '"Surprise!" {shouted|said} [hero] when [his] [mom] came in.')
    s.add('"This is the best {gift|present|birthday} ever," said [his] [mom].', "[his] [mom] {hugged [him]|had tears of joy|laughed with joy}. They ate it together.")
    s.maybe(0.4, "They {gave|took} a piece to [owner] too.")
    close(s, "[hero] learned that {a gift made with love is the best gift|if you help others, they will help you}.")


def seed(s: Story) -> None:
    plant, result = s.choice(SEEDS)
    s.slot.update(plant=plant, result=result)
    s.add(f"{one_day(s)}, [his] [mom] gave [him] a {{tiny|small}} [plant] seed.", f"{one_day(s)}, [hero] found a {{small|tiny}} [plant] seed {{in [his] pocket|on the path|in a drawer}}.")
    s.add("[he] {dug a hole in the garden and put it in|planted it in a pot|put it in the soft ground}.", '"I will {plant|grow} it," said [hero], and [he] {dug a small hole|got a pot}.')
    s.add("Every {day|morning}, [he] gave it {water|some water} and {waited|sang to it|looked at it}.", "[he] watered it {each morning|every day}.")
    s.add('But nothing {happened|came up}. "{Why does it not grow|When will it grow|Is it asleep}?" asked [hero].', "Days went by, but {there was nothing to see|it did not grow}. [hero] was {sad|not happy}.")
    s.add('"{Be patient|Good things take time|Give it time}," said [his] [mom].', "[pal] said, \"It will never grow.\" But [hero] did not give up.",
          "[he] wanted to dig it up, but [his] [mom] said to wait.")
    s.para()
    s.add("Then it rained for {two|three} days, and the sun came out.", "{A week|Two weeks} later, there was a surprise.", "One morning, [he] {looked at the ground|ran outside} and {jumped|shouted}.")
    s.add("A {tiny|small} green {leaf|shoot} {was there|had come up}!", '"Look! Something green!" [he] {said|cried}.')
    s.add("It grew {and grew|a little every day|taller and taller}.", "")
    s.add("By the end of summer, it was a [result].", "Soon there was a [result] in the garden.")
    s.add("[hero] shared it with {[his] [mom]|[pal]|all the neighbors|everyone}.", f"[hero] {GLAD}.", "Everyone came to {see it|look}.")
    s.maybe(0.5, "[he] kept {some seeds|one seed} for the next {year|spring}.")
    close(s, "[hero] learned to {wait|be patient}.", "[hero] learned that {good things take time|if you care for something, it will grow}.")


def rainy_day(s: Story) -> None:
    stuff, made, play = s.choice(BUILDS)
    s.slot.update(stuff=stuff, made=made, play=play)
    s.add("One day, it rained {and rained|all morning|so hard that nobody could go out}.", "It was a {rainy|wet|gray} day. The rain {fell on the roof|ran down the window}.")
    s.add("[hero] looked out of the window{ and sighed|}. [he] {was bored|could not play outside}.", '"There is nothing to do," [he] said. "{I am bored|I want to go outside}."')
    meet_pal(s)
    s.add('Then [pal] {came over|knocked at the door} and said, "I have an idea!"', 'When [pal] came over, [hero] said, "{Let us make something|I have an idea}!"')
    s.add("They {found|got|took} [stuff].", "In the house, they found [stuff].")
    s.add("{Soon|Before long|With some work}, it was [made]!", "They made [made] out of it.", '"It can be [made]!" said [hero].')
    s.para()
    s.add("They pretended that [play].", "All {day|afternoon}, they pretended that [play].")
    s.add('"{Watch out|Be careful|Hold on}!" {shouted|cried} [pal]. [hero] laughed{ so hard that [he] fell over|}.', "They laughed {and shouted|a lot|until their tummies hurt}.")
    s.maybe(0.5, "[his] [mom] brought them [food] {and warm milk|and a blanket|to eat}.", "Even the cat wanted to play.")
    s.add("When they looked up, the rain had stopped.", "At last, the rain stopped and the sun came out.", '"Look, the rain is gone!" said [pal].')
    s.add("There was a {big|bright|beautiful} rainbow {in the sky|over the [place]}.", "But they did not want to go out now.")
    close(s, "[hero] learned that {a rainy day can be fun too|you can have fun anywhere with a friend}.", '"I hope it rains again tomorrow," said [hero].')


def race(s: Story) -> None:
    s.slot["prize"] = s.choice(("a gold cup", "a big cake", "a blue ribbon", "a shiny medal", "a new [toy]"))
    s.add(f"{one_day(s)}, there was a {{big |}}race {{in the village|at the [place]|around the [place]}}. The prize was [prize].",
          "Every year, there was a {big |}race {around|near} the [place], and the winner got [prize].")
    s.add("[hero] wanted to win{ more than anything|}. [he] {ran|trained} every {day|morning}.", '"I will win [prize]," said [hero]. [He] practiced every day.')
    s.add("A [palkid] named [pal] was {fast|very fast} too.", "[pal] was the fastest [palkid] in the {village|school}. \"You cannot beat me,\" [palhe] said.")
    s.add("{Ready, set, go!|The bell rang, and the race began.} Everyone ran{ as fast as they could|}.", "On the day of the race, everyone came to watch. Ready, set, go!")
    s.para()
    s.add("[hero] {was in front|ran faster and faster}. The end was {near|close}.", "[hero] and [pal] were {side by side|far in front}.")
    s.add("Then [pal] {fell over a stone|tripped|slipped in the mud} and {hurt [palhis] knee|could not get up}.")
    s.add("[hero] {heard a cry and looked back|stopped}. [he] could win now, or [he] could help.", "[hero] saw it. For a moment, [he] did not know what to do.")
    s.add("[he] {turned around|ran back} and {helped [pal] up|held out [his] hand}.", '"{Are you hurt|Can you walk}?" asked [hero], and helped [pal] to stand.')
    s.add("Together they walked {slowly |}to the end. {They came last|Someone else won}.", "They crossed the line together, hand in hand, {after all the others|last of all}.")
    s.add("But everyone {clapped|cheered} for {them|[hero]}{ the loudest|}.", '"You did not win the race," said [his] [mom], "but {I am very proud of you|you won a friend}."')
    s.add('"Thank you," said [pal]. "{You are a true friend.|Will you be my friend?}"', "After that, [hero] and [pal] {ran together every day|were good friends}.")
    close(s, "[hero] learned that {a friend is better than a prize|being kind is more important than winning}.")


def truth(s: Story) -> None:
    what, how, fix = s.choice(ACCIDENTS)
    s.slot.update(what=what, how=how, fix=fix)
    s.add(f"{one_day(s)}, [hero] was {{playing in the house|at home|bored}}. [he] [how]. {{Crash|Bang|Crack}}!", f"{one_day(s)}, [he] [how], and there was a loud crash.")
    s.add("[what] was broken.", "[hero] looked and saw that [what] was broken.", '"Oh no!" said [hero]. Now [what] was broken.')
    s.add("[he] was {afraid|scared} {that [his] [mom] would be angry|and hid in [his] room}.", "Quickly, [he] {hid behind the sofa|ran outside|ran to [his] room}.")
    s.add('"Who {did this|broke it}?" asked [his] [mom]. "{I do not know|It was not me|Maybe it was the cat}," said [hero].',
          '[his] [mom] saw it and asked, "What happened?" [Hero] {said nothing|looked at the floor}.')
    s.para()
    s.add("But [hero] did not feel {good|well}. [he] could not {eat|play|sleep}.", "All day, [he] had a bad feeling in [his] tummy.", "The lie felt {heavy|like a stone}.")
    s.add('At last, [he] went to [his] [mom] and said, "{I did it|It was me|I broke it}. I am {so |very |}sorry."', "That {evening|night}, [hero] told [his] [mom] the truth and began to cry.")
    s.add('"{Thank you for telling me|I am glad you told the truth|That was brave}," said [his] [mom].', "[his] [mom] was {not angry|sad about it, but not angry}. [momhe] gave [him] a hug.")
    s.add("Together they [fix].", "[hero] wanted to make it right, so [he] [fix].")
    s.add(f"[hero] {GLAD}.", "[hero] felt {light|much better|happy} again.")
    close(s, "[hero] learned that {it is always better to tell the truth|the truth makes the heart light}.", '"{We all make mistakes|Everyone breaks things sometimes}," said [his] [mom].')


def newcomer(s: Story) -> None:
    s.add(f"{one_day(s)}, a new [palkid] came to the {{village|school|playground}}. [palhis] name was [pal].", f"{one_day(s)}, a family moved in next door. They had a [palkid] named [pal].")
    s.add("[pal] {sat alone|stood by the wall} and did not {talk|say a word}.", "[pal] was {very |}shy and {looked at the ground|played alone}.")
    s.add('"Why does nobody play with [palhim]?" {thought|asked} [hero].', "[hero] {saw this|watched for a while} and {felt sad|wanted to help}.", "The other children did not {see|talk to} [pal].")
    s.add('[hero] went {over|up to [palhim]} and said, "{Hello|Hi}! I am [hero]. {Do you want to play|Would you like to see my [toy]}?"')
    s.add('"I do not know {your games|anyone here}," said [pal] {softly|in a small voice}.', "[pal] {looked up|smiled a little} and said yes.", "[pal] did not answer at first. Then [palhe] {smiled|nodded}.")
    s.para()
    s.add("[hero] showed [palhim] {the [place]|the best tree to climb|how to play the game|all the secret places}.", "They went to the [place] and {looked for frogs|played with the [adj] [toy]|climbed a tree}.")
    s.add("[pal] knew {many funny songs|how to make little boats out of leaves|a lot about the stars|stories from far away}.", "It turned out that [pal] could {do magic tricks|draw very well|tell funny jokes}.")
    s.add("Soon the other children came {to watch|to listen|to join them}.", "They laughed so much that {all the others came to join them|everyone wanted to play too}.")
    s.add('"{I am glad I came here|Thank you for asking me}," said [pal].', "[pal] was not shy anymore.")
    close(s, "[hero] learned that {a kind word can make a friend|every friend was a stranger once}.", "From that day on, [hero] and [pal] walked to school together.")


def wish(s: Story) -> None:
    want, result, trouble, missed = s.choice(WISHES)
    s.slot.update(want=want, result=result, trouble=trouble, missed=missed, giver=s.choice(("fish", "bird", "frog", "stone", "lamp", "star")))
    s.add(f"{one_day(s)}, [hero] found a {{strange|magic|shiny}} [giver] {{near the [place]|by the [place]}}.", f"{one_day(s)}, while [he] was at the [place], [hero] met a {{talking|magic}} [giver].")
    s.add('"{Hello|Do not be afraid}," said the [giver]. "{I can give you one wish|You may make one wish}."', '"You may have one wish," said the [giver]. "Think {well|carefully}!"')
    s.add('[hero] did not think {for long|much}. "I wish [want]!" [he] said.', '"That is easy," said [hero]. "I wish [want]!"')
    s.add("There was a {flash|puff of smoke|bright light}, and [hero] [result].", "At once, [hero] [result].")
    s.add("At first it was {fun|wonderful|great}.", '"This is {wonderful|great}!" [he] {shouted|laughed}.')
    s.para()
    s.add("But {soon|after a while|before long}, [he] [trouble].")
    s.add("[he] {was not happy|felt sad|began to cry}. [he] missed [missed].", '"I do not like this anymore," said [hero]. "I miss [missed]."')
    s.add("So [he] {went|hurried} back to the [giver].", "[he] {called|looked for} the [giver] {until it came|everywhere and found it at last}.")
    s.add('"Please, {take the wish back|make it the way it was}," {begged|said} [hero].', '"I was {silly|foolish}," said [hero]. "Please take my wish back."')
    s.add('The [giver] {laughed|smiled|shone}. "{Now you know what you have|You have learned something}," it said.', "The [giver] was kind and took the wish back.")
    s.add("{In a moment|Just like that}, everything was {as before|the same as before}.", "[hero] was home again, and everything was {just right|as it should be}.")
    close(s, "[hero] learned to {be happy with what [he] had|think before making a wish}.", "[he] never wished for such a thing again.")


def skill(s: Story) -> None:
    what, fail, hint, win = s.choice(SKILLS)
    s.slot.update(what=what, fail=fail, hint=hint, win=win)
    s.add("[hero] wanted to learn to [what].", f"{one_day(s)}, [hero] saw [pal] [what]. [he] wanted to {{do|learn}} that too.", "All [his] friends could [what], but [hero] could not.")
    s.add("[he] tried, but [fail].", "The first time, [fail].")
    s.add("[he] tried again{ and again|}, and it was {no better|the same}.", "[he] tried {a second time|once more}, and it happened again.")
    s.add('"I {can never|will never} do it," [he] said. "{It is too hard|I give up}."', "[hero] {sat down and cried|was angry and wanted to stop}.")
    s.add('[his] [mom] sat down next to [him]. "{Nobody can do it the first time|Let me give you a tip|I could not do it either at first}," [momhe] said.',
          'Then [pal] came by. "{It took me a long time too|Do not give up}," said [pal].')
    s.add('"The trick is this: [hint]."', '"Try this: [hint]."')
    s.para()
    s.add("[hero] {nodded|wiped [his] eyes} and tried again.", "[he] practiced {every day|all week}{ until it was dark|}.", "The next {day|morning}, [hero] tried it {that way|again}.")
    s.add("It was {a little better|not perfect, but better}.", "This time, it almost worked.", "Little by little, it became easier.")
    s.add("And then, {one day|at last}, [he] [win]!", "At last, [he] [win]!")
    s.add('"I can do it! {Look at me|I did it}!" {shouted|cried} [hero].', f"[hero] {GLAD}.")
    s.add("[his] [mom] {clapped|was so proud}.", "")
    close(s, "[hero] learned to never give up.", "[hero] learned that {practice makes things easier|you get better when you keep trying}.", "The next day, [he] taught {a smaller child|a friend} to do it too.")


def trading(s: Story) -> None:
    chain = s.rng.sample(("an egg", "a loaf of bread", "a rope", "a pot", "a bag of salt", "a blanket", "a candle", "a fishing rod"), 3)
    people = s.rng.sample(("a farmer", "a baker", "a fisherman", "an old woman", "a tailor", "a miller", "a shepherd"), 3)
    s.slot["gift"] = s.choice(("a warm coat for [his] [mom]", "a new [toy]", "a little goat", "a book of stories", "a pair of red shoes"))
    for i in range(3):
        s.slot.update({f"item{i}": chain[i], f"man{i}": people[i], f"theman{i}": "the " + people[i].split(" ", 1)[1],
                       f"the{i}": "the " + chain[i].split(" ", 1)[1]})
    s.add("[hero] wanted {to buy |}[gift], but [he] had no money. All [he] had was [item0].", f"{one_day(s)}, [hero] went to the market with [item0]. [he] wanted [gift].")
    s.add("On the {way|road}, [he] met [man0] who {looked sad|was in trouble}.", "Soon [he] met [man0].")
    s.add('"I need [item0]," said [theman0]. "Will you {trade|give} it to me for [item1]?"',
          '"If I only had [item0]!" said [theman0]. [hero] gave it to [theman0] and got [item1] {for it|in return}.')
    s.slot["next"] = s.expand("[hero] {said yes|was glad to help|nodded} and walked on with [item1].")
    s.add("[next]")
    s.para()
    s.add("Then [he] met [man1]. [theman1] {needed|was looking for} [item1] and gave [him] [item2] for it.",
          "Next, [he] saw [man1] by the road, who wanted [the1]. So [hero] traded it for [item2].")
    s.add("{At last|In the end}, [he] came to [man2], who needed [the2] very much, and who gave [him] [gift].",
          "{At last|In the end}, [man2] came by. [theman2] needed [the2] very much, and so [hero] got [gift].")
    s.add(f"[hero] {GLAD}.", "[hero] ran all the way home to {show|tell} [his] [mom].")
    s.add('"All that for [item0]?" {asked|laughed} [his] [mom].', '"How did you {do|get} that?" asked [his] [mom]. [hero] told the whole story.')
    close(s, "[hero] learned that {a small thing can become a big thing|everyone needs something}.")


def lost_way(s: Story) -> None:
    s.slot.update(lure=s.choice(("a blue butterfly", "a white rabbit", "a red balloon", "a trail of mushrooms")),
                  guide=s.choice(("owl", "deer", "fox", "crow", "frog", "mouse")), need=s.choice(FRUITS))
    s.add(f"{one_day(s)}, [hero] followed [lure] {{into the woods|deep into the forest}}.", f"{one_day(s)}, [he] saw [lure] and followed it into the trees.")
    s.add("[he] walked {on and on|far|a long way}. When [he] looked {around|back}, the path was gone.", "Soon all the trees looked the same. [hero] was lost.")
    s.add('"{How will I get home|Where am I}?" [he] {asked|cried}.', "It was getting dark, and [hero] was {afraid|cold|hungry}.", "[he] called {for [his] [mom]|out}, but nobody {answered|came}.")
    s.add("Then [he] saw {a|an old} [guide] by a tree. \"I am hungry,\" said the [guide]. \"Do you have {some food|something to eat}?\"")
    s.add("[hero] had only one [need], but [he] gave it to the [guide].", "[hero] had one [need] in [his] pocket. [he] shared it with the [guide].")
    s.para()
    s.add('"Thank you," said the [guide]. "You are kind. {Follow me|I know the way|I will take you home}."', 'The [guide] ate it and said, "{One good turn deserves another|Now I will help you}. Come with me."')
    s.add("They went {past a big rock|over a stream|under a fallen tree} and {around a pond|through tall grass|down a hill}.", "The [guide] went first, and [hero] {followed|stayed close behind}.")
    s.add("{At last|Soon}, [hero] saw {the lights of [his] house|the roof of [his] house|smoke from the chimney}.", "Then [hero] {heard [his] [mom] calling|saw [his] [mom] with a lamp}.")
    s.add('"Where have you been?" asked [his] [mom], and hugged [him].', "[his] [mom] {ran to [him]|held [him] tight}. \"I was so worried,\" [momhe] said.")
    s.add("[hero] turned around to say thank you, but the [guide] was gone.", "[hero] waved to the [guide], and the [guide] went back into the trees.")
    close(s, "After that, [hero] always {stayed on the path|left a [need] at the edge of the woods}.", "[hero] learned that {kindness shows the way|it is wise to stay on the path}.")


def sick_friend(s: Story) -> None:
    meet_pal(s)
    s.add(f"{one_day(s)}, [pal] did not come to {{play|school}}.", f"{one_day(s)}, [hero] waited at the [place], but [pal] did not come.")
    s.add('"[pal] is sick," said [his] [mom].', "[pal] was {sick|ill} and had to stay in bed.")
    s.add("[hero] {was sad|wanted to help|thought of [his] friend all day}.", '"What can I do?" {asked|thought} [hero].')
    s.add("[he] {made|cooked} some {warm |hot |}soup with [his] [mom].", "[he] picked {some flowers|a bunch of flowers} {by the [place]|on the way}.", "[he] drew a funny picture of {a dancing bear|a cow on a bike|a cat with a hat}.")
    s.add("Then [he] went to {the house of [pal]|visit [pal]}.", "[he] went to [pal] as fast as [he] could.")
    s.para()
    s.add("[pal] was in bed and looked {pale|tired}, but {smiled|was glad} when [hero] came in.", '"I am so {glad|happy} you came," said [pal] in a weak voice.')
    s.add("[hero] read a story about {a brave mouse|a flying whale|a little train|a king with no crown}.", "[hero] told [palhim] {funny jokes|all the news|a story}, and [pal] laughed.")
    s.add("[hero] came {back|to visit} every day {for a week|until [pal] was well}.", "The next day, [pal] {felt better|could sit up}.")
    s.add("Soon [pal] {could run and play again|was well again}.", "After {three|four|five} days, [pal] {was well|was not sick anymore}.")
    s.maybe(0.5, "A {month|week} later, [hero] was sick. And who came with {soup|flowers}? It was [pal]!")
    close(s, "[hero] learned that {a good friend is the best medicine|love makes us strong}.", '"{You are the best friend|Thank you for coming}," said [pal].')


def picnic(s: Story) -> None:
    s.slot["bad"] = s.choice(("dark clouds came, and it began to rain", "a line of ants marched over the blanket", "a dog ran off with the basket",
                              "a strong wind blew the plates away", "a cow came and sat down on the blanket"))
    meet_pal(s)
    s.add(f"{one_day(s)}, [hero], [pal] and [his] [mom] {{went on|had}} a picnic {{at|near}} the [place].", f"{one_day(s)}, [hero] and [pal] {{made|planned}} a picnic {{at|by}} the [place].")
    s.add("They packed [food], {milk|juice|cold water} and {apples|plums|grapes}.", "In the basket, there was [food] and a {big|small} bottle of {milk|juice}.")
    s.add("They {found a nice place under a tree|put the blanket on the grass|sat down in the sun}.", "")
    s.add("{But just then|Suddenly|But as soon as they sat down}, [bad].")
    s.add('"Oh no! {Our picnic!|What now?|Our lunch!}" cried [pal].', "[pal] was {very |}{sad|upset}.")
    s.para()
    s.add('[hero] thought for a moment. "{I have an idea|Wait}," [he] said. "We can {have our picnic at home|eat under the big tree|go to the old barn}."',
          'But [hero] {laughed|smiled}. "{It is funny|It does not matter}," [he] said. "{We will find another place|We can still have fun}."')
    s.add("So they {picked up|gathered} {their things|what was left} and {ran|went}.", "They took {the blanket|what was left} and ran, laughing all the way.")
    s.add("They {shared the last bit of food|sat close together} and told {stories|jokes}.", "They still had {some|enough} [food] for {everyone|all of them}, and it tasted {even better|very good}.")
    s.add('"This is the best picnic ever," said [pal].', "In the end, it was {more fun than before|a good day}.")
    close(s, "They learned that {a plan can change and still be good|you can laugh when things go wrong}.")


def snow(s: Story) -> None:
    s.slot["nose"] = s.choice(("a carrot", "a stick", "a red apple", "a pine cone"))
    s.add("One {winter |}morning, [hero] looked out of the window. Everything was white!", "One winter day, it {snowed|began to snow}. [hero] was {excited|so happy}.")
    s.add("[he] put on [his] {warm |}{coat|boots} and ran outside.", "[He] put on a hat, a scarf and two pairs of socks.")
    meet_pal(s)
    s.add("{Together they|[hero] and [pal]} {made|built} a {big|tall|round} snowman.", '"Let us {make|build} a snowman!" said [pal]. They rolled {three|two} big balls of snow.')
    s.add("It had an old hat, [nose] for a nose and {two stones|two buttons} for eyes.", "They gave it {[nose] for a nose|an old hat and [nose] for a nose}.")
    s.maybe(0.6, 'They {named|called} it {Mr. Cold|Frosty|Mr. White|Snowy}.', "They {danced|ran} around it and sang.", "They threw snowballs until their hands were cold.")
    s.para()
    s.add("{A few days later|The next week}, the sun {came out|was warm}, and the snowman {began to melt|got smaller and smaller}.")
    s.add('"Please do not go," said [hero] {sadly|with tears in [his] eyes}.', "[hero] {was sad|cried}. \"Our snowman is {going away|melting}!\" [he] said.")
    s.add('"{He is not gone|Do not be sad}," said [his] [mom]. "The snow turns to water, and {the water makes the flowers grow|next winter it comes back as snow}."')
    s.add("{In the spring|Some weeks later}, {a small flower grew|there were flowers} where the snowman had been.", "[hero] kept the hat in a box for the next winter.")
    s.add(f"[hero] {GLAD}.", '"Hello, {snowman|old friend}," said [hero] {softly|with a smile}.')
    close(s, "[hero] learned that {things change, but nothing is really lost|we can love something and let it go}.")


def treasure(s: Story) -> None:
    stops = s.rng.sample(("the old well", "the big oak tree", "the stone bridge", "the hollow log", "the tall rock", "the red barn", "the broken wall"), 3)
    s.slot.update(stop0=stops[0], stop1=stops[1], stop2=stops[2], prize=s.choice(TREASURES))
    meet_pal(s)
    s.add(f"{one_day(s)}, [hero] found {{an old map|a map|a piece of paper with a map}} {{in a book|in a bottle|in the attic|under a stone}}.")
    s.add('"It is a treasure map!" {said|shouted|cried} [pal].', "[he] showed it to [pal]. There was a {big|red} cross on it.")
    s.add("They took {a lamp|a shovel|a rope} and {some [food]|two apples} and {set off|went out}.", '"{Let us find the treasure|Come on|Let us go}!" said [hero].')
    s.add("First, they had to {go to|find} [stop0]. There they {counted ten steps|turned left|found an arrow}.", "The map led them to [stop0] first.")
    s.add("Then they came to [stop1]. {A crow watched them|It was getting hot|A sign said to go on}.", "After that, they walked to [stop1]{, and they sat down to rest|, where they ate some of their food}.")
    s.para()
    s.add('"{I am tired|This is too far}," said [pal]. "{We are almost there|Just a little more}," said [hero].', "The way was {long|hard}, but they {helped each other|did not stop}.")
    s.add("{At last|Finally}, they {came to|stood in front of} [stop2].", "The cross on the map was at [stop2].")
    s.add("They dug {and dug |}until they {hit something hard|heard a clink}.", "They looked {under the leaves|behind the stones|in every corner}, and there was {something|a small chest}.")
    s.add("It was [prize]!", "What was it? It was [prize]!")
    s.add(f"[hero] {GLAD}.", "They {looked at each other and laughed|danced around and laughed}.", '"{We found it|We did it}!" they {shouted|cried}.')
    s.add("They {shared it|took it home} and told [his] [mom] all about it.", "")
    close(s, "[hero] learned that {the best treasure is a good friend|the way can be better than the prize}.", "Then they drew a new map for {the next child|someone else} to find.")


def advice(s: Story) -> None:
    rule, reason, deed, result = s.choice(ADVICE)
    s.slot.update(rule=rule, reason=reason, deed=deed, result=result)
    s.add(f'{one_day(s)}, [his] [mom] said, "[hero], [rule]. [reason]."')
    s.add('"{Yes, yes|I know|All right}," said [hero], but [he] did not {really |}listen.', "But [hero] {did not want to listen|thought [he] knew better}.")
    s.add("[he] [deed].", "As soon as [his] [mom] was gone, [he] [deed].")
    s.maybe(0.5, "[pal] saw this. \"Are you sure?\" asked [pal].", '"{Nothing will happen|It will be fine}," [he] {thought|said}.')
    s.para()
    s.add("{But then|Not long after|A little later}, [result].")
    s.add('"Oh no!" {cried|said} [hero]. "{I should have listened|I was wrong}."', "Now [hero] {was sorry|felt bad|wished [he] had listened}.")
    s.add("[his] [mom] came and {helped [him]|took [his] hand|saw what had happened}.", "[he] went to [his] [mom] and told [momhim] {everything|what had happened}.")
    s.add('"{Are you all right|What did you learn}?" asked [his] [mom].', '[his] [mom] did not {scold|shout at} [him]. "{We all learn|It happens}," [momhe] said.')
    s.add('"I am sorry," said [hero]. "{Next time I will listen|I will listen to you}."', "[hero] {said sorry|nodded} and {promised to listen|gave [his] [mom] a hug}.")
    s.maybe(0.6, "The next day, [his] [mom] said it again, and this time [hero] listened.", "Together they made {everything|it all} {right|good} again.")
    close(s, "[hero] learned that it is good to listen.", "[hero] learned that {[his] [mom] knew best|some advice is worth following}.")


def night_noise(s: Story) -> None:
    sound, guess, cause = s.choice(NOISES)
    s.slot.update(sound=sound, guess=guess, cause=cause)
    s.add("One night, [hero] {could not sleep|woke up}. {There was|[he] heard} [sound].", "It was {late|dark and quiet}, and [hero] was in bed. Then [he] heard [sound].")
    s.add('"{Maybe it is|It must be} [guess]!" [he] {thought|whispered}.', '"What is that?" [he] {whispered|asked}. "Is it [guess]?"')
    s.add("[he] pulled the blanket over [his] head.", "[his] heart {beat|went} fast.", "[he] {held [his] [toy] tight|did not dare to move}.")
    s.add("There it was again: [sound].", "The sound came {again|closer}.")
    s.add("[he] {ran to|called} [his] [mom]. \"{Come with me|Let us look together},\" said [his] [mom].", 'At last, [hero] said, "I {will be brave|want to know}." [He] {took a lamp|got out of bed}.')
    s.para()
    s.add("{Step by step|Slowly|On tiptoe}, [hero] went {down the stairs|to see|toward the sound}.")
    s.add("[he] {opened the door|lifted the lamp|looked} and {saw|found} [cause]!", "And what was it? It was [cause]!")
    s.add("[hero] {laughed|had to laugh|laughed out loud}. \"It is not [guess] at all,\" [he] said.", '"So it was only [cause]!" said [hero].')
    s.add("[he] went back to bed and {slept well|soon fell asleep}.", "After that, [hero] {was not afraid anymore|could sleep}.")
    close(s, "[hero] learned that {things are less scary when you look at them|it is good to look before you are afraid}.")


def fishing(s: Story) -> None:
    s.slot.update(catch=s.choice(("golden", "huge", "silver", "old")), gift=s.choice(("a pearl", "a shell that sings", "a wet wink", "a ring that was lost long ago")))
    s.add(f"{one_day(s)}, [hero] and [his] [mom] went fishing {{at the river|on the lake|in a little boat}}.", f"{one_day(s)}, [hero] took [his] rod and went {{to the river|to the lake}}.")
    s.add("[hero] waited and waited{, but no fish came|}.", "For a long time, nothing happened. The water was {calm|still}.")
    s.add("{Suddenly|Then}, {something pulled|there was a pull} on the line.", '"I have {one|something}!" {shouted|cried} [hero].')
    s.add("[he] pulled {and pulled|hard}, and out came a [catch] fish.", "It was a [catch] fish, {bigger than a boot|with bright eyes}!")
    s.add('"Please let me go," said the fish. "{I have a family at home|My children are waiting|I want to swim with my friends}."', "The fish {looked at [him] with sad eyes|opened and closed its mouth}, as if to say please.")
    s.para()
    s.add("[hero] {was hungry|had wanted a fish for dinner}, but [he] {felt sorry for it|thought of its family}.", '"What would I do in its place?" thought [hero].')
    s.add("So [he] {put it back into the water|let it go}.", "[he] opened [his] hands, and the fish {swam away|was free}.")
    s.add("{A moment later|Soon after}, the fish came back and gave [him] [gift].", "Before it left, the fish gave [him] [gift].")
    s.add("[his] [mom] said, \"{You have a good heart|That was kind|I am proud of you}.\"", f"[hero] {GLAD}.")
    s.add("They went home without a fish, but nobody {was sad|minded}.", "")
    close(s, "[hero] learned that {being kind is better than a full plate|every animal wants to be free}.")


def greedy(s: Story) -> None:
    s.slot["fruit"] = s.choice(FRUITS)
    s.slot["fruits"] = s.slot["fruit"] + ("es" if s.slot["fruit"] == "peach" else "s")
    meet_pal(s)
    s.add(f"{one_day(s)}, [hero] found a tree full of {{ripe|sweet}} [fruits].", f"{one_day(s)}, [his] [mom] gave [him] a {{big|full}} basket of [fruits]. \"Share them with [pal],\" [momhe] said.")
    s.add("[hero] {ate one|took one}. It was {so |very |}{sweet|good}. Then [he] ate {another|two more}.", '"I will eat {just one|only one}," said [hero]. But [he] could not stop.')
    s.add('"{May|Can} I have one?" asked [pal]. "No, {they are all mine|I found them}," said [hero].', "When [pal] came, [hero] hid the [fruits] behind [his] back.")
    s.add("[pal] {went away|walked home} {sadly|without a word}.", "[pal] {was sad|looked sad} and went home.")
    s.para()
    s.add("[hero] ate {all the [fruits]|until there was only one left}. Then [his] tummy {began to hurt|hurt}.", "Soon [hero] had {a terrible|a bad} tummy ache and could not {walk|stand up}.")
    s.add("And who came back? It was [pal]!", "[pal] heard [him] {crying|moan} and came {running|back}.")
    s.add("[pal] {brought [him] some tea|helped [him] home|sat with [him] until [he] felt better}.", '"I will help you," said [pal], and {took [him] home|got some warm tea}.')
    s.add('"Why are you so kind to me?" asked [hero]. "Because you are my friend," said [pal].', '[hero] {felt ashamed|was sorry}. "I was {mean|greedy}," [he] said. "I am sorry."')
    s.add("The next {day|time}, [hero] brought {a big basket|the best [fruits]} and shared with [pal].", "After that, [hero] {always shared|gave [pal] half of everything}.")
    close(s, "[hero] learned that {too much of a good thing is bad|food tastes better when you share it}.")


# In the first kind the two children may be friends from the start; in the second they are not, or there is only one.
FRIEND_PLOTS = (lost_thing, sharing, rainy_day, sick_friend, picnic, snow, treasure, greedy)
OTHER_PLOTS = (rescue, fear, baking, seed, race, truth, newcomer, wish, skill, trading, lost_way, advice, night_noise, fishing)


def tell(s: Story) -> None:
    """Any opening that suits any plot."""
    plot = s.choice(FRIEND_PLOTS + OTHER_PLOTS)
    if plot in FRIEND_PLOTS and s.rng.random() < 0.4:
        open_pair(s)
    else:
        if s.rng.random() < 0.1 and plot is not newcomer:
            s.make_nameless()
        open_story(s)
    plot(s)
