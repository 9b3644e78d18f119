"""The lexicon of the corpus: names, animals, places and things that the plots draw from."""

GIRLS = """Lily Mia Anna Lucy Sara Emma Ella Zoe Rosa Nina Amy Kate Molly Daisy Ruby Grace Ivy Maya Lena Clara Tina
Jane Sophie Alice Nora Hana Leila Mina Julia Eva Polly Betty Wendy Tess Bella Mary Sue Ana Penny Hazel Olive Freya
Iris Joy Kim Lola Maria Nell Pia Rita Stella Tara Uma Vera Willa Yara Abby Bea Cora Dora""".split()

BOYS = """Tom Ben Sam Max Tim Jack Leo Finn Oscar Noah Adam Luke Peter Hugo Eli Omar Theo Felix Jim Billy Bob Alex Dan
Nick Will Charlie Henry Oliver Toby Ravi Kai Mark Paul Victor Sid Andy Ali Bruno Carl Dino Ed Fred George Harry Ian
Jonas Ken Louis Mike Ned Otto Pat Rob Simon Ted Umar Vik Walt Yusuf Zack""".split()

SYLLABLES = """ba bo da do fa fi ga go ha jo ka ki la lo lu ma mi mo na ni no pa pi po ra ri ro sa so ta ti to va vi
wa ya zi zo bel dan fin gor lin mar nel pim rin sol tam tul wen zan""".split()

ANIMAL_HEROES = """rabbit fox bear mouse squirrel hedgehog duck frog owl cat puppy pig goat turtle mole badger otter
lamb""".split()

GROWN_UPS = (("mother", "she"), ("mom", "she"), ("father", "he"), ("dad", "he"), ("grandmother", "she"),
             ("grandma", "she"), ("grandfather", "he"), ("grandpa", "he"), ("aunt", "she"), ("uncle", "he"))

TRAITS = """kind curious brave quiet cheerful clever shy careful friendly gentle funny busy happy helpful playful
polite""".split()

ADJECTIVES = """red blue green yellow big little small shiny soft old new round wooden pretty bright white brown orange
purple golden""".split()

TOYS = """ball kite doll drum boat train car bear robot puzzle scarf hat whistle bell book top marble wagon puppet
cup""".split()

PLACES = ("park", "garden", "forest", "beach", "farm", "lake", "meadow", "river", "market", "pond",
          "field", "playground")

FOODS = ("bread", "soup", "apple pie", "cookies", "pancakes", "cake", "porridge", "berries", "sandwiches", "noodles",
         "cheese", "honey cake", "rice pudding", "muffins")

FRUITS = ("apple", "pear", "plum", "peach", "orange", "banana")

WEATHER = ("sunny", "warm", "windy", "cloudy", "bright", "cool", "quiet", "hot", "clear", "misty")

# A place to look, and what is found there instead of the lost thing.
HIDING_PLACES = (
    ("under the bed", "an old sock"), ("behind the sofa", "a spoon and some dust"),
    ("in the kitchen", "a pot of warm soup"), ("in the closet", "a pile of coats"),
    ("under the table", "a sleepy cat"), ("in the garden", "two snails on a leaf"),
    ("behind the door", "a broom"), ("in the big box", "some old letters"),
    ("on the shelf", "a row of books"), ("in the shed", "a rake and a spider"),
    ("near the gate", "a trail of ants"), ("under the stairs", "a broken lamp"),
    ("in the basket", "a ball of wool"), ("next to the well", "a green frog"),
)

# Lost things: the place where each was, and the cause.
THIEVES = (
    ("in the nest of a bird", "A bird had used it to make the nest pretty"),
    ("in the dog's bed", "The dog had carried it away because it smelled like home"),
    ("at the top of a tree", "The wind had carried it up there"),
    ("in the laundry basket", "It had fallen in with the dirty clothes"),
    ("under a big leaf", "It had rolled down the path and stopped there"),
    ("behind a flower pot", "The cat had pushed it there while it was playing"),
    ("in a hole in the ground", "A little mole had pulled it in to make its home nice"),
    ("on the neighbor's porch", "The neighbor had found it on the road and kept it safe"),
    ("in the pocket of an old coat", "It had been there the whole time"),
)

# An animal in trouble: kind, trouble, how it is freed, what it gives back later.
RESCUES = (
    ("bird", "had hurt its wing and could not fly", "made a soft bed in a box and fed it every day",
     "sang a beautiful song at the window every morning"),
    ("kitten", "was stuck high up in a tree", "got a ladder and climbed up slowly",
     "purred and slept next to the bed that night"),
    ("turtle", "was lying on its back and could not turn over", "turned it over with both hands",
     "showed the way to a pond full of lilies"),
    ("duck", "had a string tied around its foot", "cut the string with great care",
     "led all its babies past the house to say hello"),
    ("hedgehog", "had fallen into a deep hole", "put a long board in the hole so it could climb out",
     "kept the garden free of bugs all summer"),
    ("bee", "had fallen into a cup of water", "lifted it out with a leaf and let it dry in the sun",
     "brought its friends, and soon the garden was full of flowers"),
    ("puppy", "was lost and shivering in the rain", "wrapped it in a warm towel and gave it some milk",
     "barked to wake everyone when the stove began to smoke"),
    ("squirrel", "had lost all of its nuts for the winter", "gathered a big bag of nuts and acorns",
     "left a shiny acorn on the step every spring"),
    ("fish", "was trapped in a small puddle far from the water", "carried it back to the water in a bucket",
     "jumped high out of the water and made everyone laugh"),
    ("lamb", "had lost its mother and was crying in the grass", "walked with it from hill to hill until its mother called",
     "ran to the fence to play whenever it could"),
)

# A fear: what is feared, a first step, a second step, what it turns out to be like.
FEARS = (
    ("the dark", "sat in the dark for one minute with the door open", "lay in bed with only a small lamp",
     "The dark was quiet and soft, and there were stars at the window"),
    ("deep water", "put only one foot in the water", "walked in until the water reached the knees",
     "The water was cool and it held everyone up like a big hand"),
    ("thunder", "counted the seconds between the light and the boom", "drew a picture of the storm",
     "The thunder was only a loud noise, and the rain smelled fresh"),
    ("the big dog next door", "looked at the dog from behind the fence", "held out a hand for the dog to sniff",
     "The dog wagged its tail and gave a wet kiss"),
    ("the high slide", "climbed only three steps and came back down", "climbed to the top and looked around",
     "The slide was fast and fun, and the wind felt good"),
    ("singing in front of people", "sang to the flowers in the garden", "sang to the family after dinner",
     "The people smiled and clapped their hands"),
    ("the old bridge", "stood at the start of the bridge and looked", "took three small steps on the wood",
     "The bridge was strong, and there were fish in the water below"),
    ("the first day of school", "walked past the school and looked in the window", "met the teacher and said hello",
     "The school was full of colors, songs and nice children"),
)

# A skill: what is learned, how it fails, the hint, how it works out.
SKILLS = (
    ("ride a bike", "the bike fell over with a crash", "look ahead and not at your feet", "rode all the way down the lane"),
    ("swim", "the water got in everyone's nose", "kick your legs slowly like a frog", "swam from one side to the other"),
    ("whistle", "only air came out", "make your lips small and blow gently", "whistled a short and happy tune"),
    ("fly a kite", "the kite dropped into the grass", "run into the wind and hold the string tight",
     "watched the kite dance above the trees"),
    ("bake bread", "the bread was as hard as a stone", "let the dough rest before you bake it",
     "pulled a soft, brown loaf out of the oven"),
    ("play the drum", "the sound was too loud and too fast", "count to four and listen", "played a song that made people dance"),
    ("draw a horse", "the horse looked like a potato", "begin with two circles and draw lightly",
     "drew a horse that seemed to run across the page"),
    ("tie a knot", "the rope came loose again", "make a loop like a rabbit ear and pull it through",
     "tied a knot that did not come loose"),
    ("skate", "there was a slip and a bump on the ice", "bend your knees and take small steps", "skated in a big, smooth circle"),
    ("catch a ball", "the ball bounced away", "watch the ball and keep your hands open", "caught the ball ten times"),
)

# A wish that goes wrong: the wish, what happens, the trouble, what is missed.
WISHES = (
    ("to be as tall as a tree", "grew and grew until the houses looked like toys", "could not fit through the door",
     "sleeping in a small, warm bed"),
    ("to have all the cake in the world", "saw cake on every chair and in every shoe", "had a bad tummy ache",
     "plain soup and bread"),
    ("to never go to bed", "stayed awake all night and all day", "was too tired to play", "sweet dreams"),
    ("to be as small as a mouse", "became so small that the grass looked like a forest", "could not lift even a spoon",
     "being hugged by the family"),
    ("for it to snow every day", "woke up to snow as high as the window", "could not go out to see anyone",
     "green grass and flowers"),
    ("to talk to all the animals", "heard every bird, bug and mouse talking at once", "could not get any rest", "a quiet morning"),
    ("to turn everything into gold", "touched the chair, and the chair became gold", "could not eat because the bread was gold",
     "a soft pillow and warm bread"),
    ("to fly like a bird", "rose into the air as light as a feather", "could not come down again", "walking on the warm grass"),
)

# A broken thing: what it is, how it breaks, how it is mended.
ACCIDENTS = (
    ("the blue vase", "ran through the room and bumped the table", "put the pieces together with glue"),
    ("the window", "kicked the ball much too hard", "helped to put in new glass"),
    ("grandma's favorite cup", "tried to carry too many things at once", "painted a new cup with flowers"),
    ("the garden gate", "swung on the gate again and again", "fixed it with a hammer and two nails"),
    ("the tall lamp", "danced around with closed eyes", "found a new bulb and made it shine again"),
    ("the picture on the wall", "threw a pillow in the air", "made a new frame out of wood"),
    ("the clock", "opened the clock to see what was inside", "put all the little wheels back in place"),
)

# Advice that is not followed: the advice, the reason, what is done instead, what happens.
ADVICE = (
    ("take your coat", "It will be cold later", "left the coat on the chair", "a cold wind came, and soon there was a lot of shivering"),
    ("do not eat all the berries", "Too many will hurt your tummy", "ate every berry in the bowl", "a bad tummy ache came"),
    ("stay close to the path", "It is easy to get lost", "followed a butterfly into the trees", "the path was gone, and all the trees looked the same"),
    ("do not touch the hot pan", "It can burn you", "reached out to see if it was really hot", "there was a cry of pain and a sore finger"),
    ("tie your shoes", "You may trip and fall", "ran out with open shoes", "there was a trip, a fall and a hurt knee"),
    ("go to bed early", "Tomorrow is a big day", "played in bed until very late", "the morning came, and nobody could wake the little sleepyhead in time"),
    ("close the gate", "The chickens will run away", "forgot about the gate at once", "all the chickens were in the road"),
    ("shake the bottle gently", "It will spill", "shook it as hard as possible", "there was juice on the table, the floor and the wall"),
)

# Things to build on a rainy day: from what, what it becomes, what is played.
BUILDS = (
    ("three big boxes", "a castle", "they were guarding a queen from a dragon"),
    ("two chairs and a blanket", "a tent", "they were camping in the mountains"),
    ("an old sheet and a broom", "a ship", "they were sailing over a wild sea"),
    ("pots and pans", "a band", "they were playing for a king"),
    ("paper and string", "a train", "they were riding through the snow"),
    ("pillows and cushions", "an island", "the floor was full of hungry fish"),
    ("a long box and silver paper", "a rocket", "they were flying to the moon"),
    ("socks and buttons", "a puppet show", "the socks were two brave knights"),
)

# A gift to bake: what, the thing that is missing, who has it.
BAKES = (
    ("a cake", "eggs", "the farmer"), ("cookies", "sugar", "the baker"), ("an apple pie", "apples", "the old man on the hill"),
    ("a honey cake", "honey", "the beekeeper"), ("pancakes", "milk", "the milkman"), ("a plum tart", "plums", "the lady next door"),
    ("muffins", "berries", "the woman at the market"), ("lemon bread", "lemons", "the man with the fruit cart"),
)

# A strange noise at night: sound, guess, what it really is.
NOISES = (
    ("a scratching sound", "a monster", "a little cat who wanted to come in"),
    ("a tap, tap, tap", "a ghost", "a branch that was knocking on the window"),
    ("a long, low howl", "a wolf", "the wind blowing in the chimney"),
    ("a loud rumble", "a giant", "the dog snoring under the table"),
    ("a soft crunching sound", "a dragon", "a mouse eating a cracker"),
    ("a splash and a drip", "a sea beast", "the tap in the kitchen"),
    ("a thump on the roof", "a thief", "an owl that had landed there"),
)

SEEDS = (("sunflower", "bright yellow flower as tall as the door"), ("pumpkin", "round orange pumpkin"), ("bean", "tall plant full of beans"),
         ("tomato", "plant with sweet red tomatoes"), ("carrot", "row of crisp carrots"), ("rose", "bush with pink roses"),
         ("strawberry", "plant full of sweet strawberries"))

TREASURES = ("a box full of shiny shells", "a jar of old coins", "a letter that said the real treasure is a good friend",
             "a tin of cookies with two cups", "a golden bell with a sweet sound", "a book full of stories",
             "a small mirror and a note that said you are the treasure")
