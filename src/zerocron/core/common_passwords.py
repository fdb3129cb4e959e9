"""Words that passwords are made of first, by people and so by those who guess.

A list of our own, written down from what everybody knows of such lists: words, names, teams, rows of keys, in lower
case and without what people hang on to them. `core.passwords` takes digits, signs and look-alikes off before it
compares, so that each word here stands for thousands: password, Password1!, P@ssw0rd2024.
"""

from __future__ import annotations

_WORDS = """
password passwort passwd passphrase contrasena contrasenya motdepasse senha parola wachtwoord haslo heslo losenord
secret secreto geheim letmein letmeinnow openup opensesame welcome welcomeback willkommen bienvenue bienvenido
changeme changeit changethis changenow default temporary temppass tempword testing tester testtest testuser testpass
demo demodemo sample example guest guestguest visitor admin administrator administrador adminadmin sysadmin superuser
superadmin root rootroot toor master masterkey manager operator service support helpdesk login loginlogin logmein
signin user username useruser nobody anonymous server backup database oracle mysql postgres postgresql redis docker
kubernetes jenkins ansible terraform zerocron croncron crontab scheduler cronjob qwerty qwertyu qwertyui qwertyuiop
qwertz qwertzui qwertzuiop azerty azertyui azertyuiop asdf asdfgh asdfghjk asdfghjkl zxcv zxcvbn zxcvbnm yxcvbnm
qazwsx qazwsxedc wsxedc qweasd qweasdzxc asdqwe asdzxc poiuyt poiuytrewq lkjhgfdsa mnbvcxz qwaszx zaqwsx zaqxsw qwer
qwerasdf qwertyasdf trewq abcd abcdef abcdefg abcdefgh abcdefghi abcabc aabbcc abcde abc xyzxyz 1q2w3e4r 1q2w3e4r5t
1q2w3e 1qaz2wsx 1qaz2wsx3edc q1w2e3r4 q1w2e3 zaq12wsx zaq1xsw2 a1b2c3d4 1a2b3c4d abc123abc 147258369 159357258
741852963 qwe123qwe asd123asd iloveyou iloveu iloveyouu iloveme ilovegod loveme lovely lover loverboy lovers loveyou
lovelove teamo tequiero jetaime ichliebedich myspace facebook google youtube instagram whatsapp tiktok twitter
linkedin microsoft windows apple iphone samsung android nokia sony playstation nintendo xbox pokemon pikachu minecraft
roblox fortnite starcraft warcraft counterstrike callofduty zelda mario sonic tetris dragon monkey tiger tigger lion
eagle falcon shark dolphin panther leopard wolf bear buffalo elephant giraffe butterfly spider scorpion cobra snake
rabbit bunny kitty kitten hellokitty puppy doggy hunter fisher turtle penguin panda koala horse pony unicorn phoenix
griffin chicken rooster cowboy cowboys cheetah cougar jaguar mustang bronco sunshine sunflower sunset sunrise
moonlight moonshine starlight rainbow summer winter spring autumn sommer fruhling herbst invierno verano primavera
otono printemps hiver automne ete snow snowball snowman flower flowers rose rosebud daisy lily violet jasmine orchid
tulip lavender cherry banana orange lemon peach strawberry blueberry pineapple watermelon mango coconut cookie cookies
chocolate candy sweet sweety sweetie sugar honey pepper ginger cinnamon vanilla coffee cheese pizza burger pancake
muffin bubbles bubba pumpkin peanut butter butterbean princess prince queen king kingkong princesa principe prinzessin
angel angels angelo angelina angelica baby babygirl babyboy babyblue babydoll bigboy bigdaddy daddy daddysgirl mommy
mother father brother sister family familia famille familie friend friends friendship bestfriend bestfriends forever
foreveryoung always together blessed blessing jesus jesuschrist christ heaven god godisgood faith hope grace trustno
trustnoone trust nothing whatever whocares superman batman spiderman ironman wolverine hulk avengers thor joker
catwoman wonderwoman marvel starwars darthvader skywalker lukeskywalker yoda jedi startrek enterprise matrix neo
trinity hobbit gandalf frodo aragorn legolas harrypotter hogwarts hermione voldemort gryffindor simpsons homer bart
snoopy scooby scoobydoo mickey mickeymouse minnie donald garfield tinkerbell barbie naruto sasuke dragonball goku
vegeta pokemongo digimon football futbol fussball fusball soccer baseball basketball volleyball hockey tennis golf
golfer rugby cricket swimming surfer skater skateboard snowboard runner racing nascar ferrari porsche mercedes toyota
honda yamaha suzuki harley corvette camaro chevy chevrolet lamborghini bmw audi jordan lebron kobe messi ronaldo
cristiano neymar barcelona realmadrid atletico madrid juventus milan liverpool chelsea arsenal manchester everton
tottenham bayern dortmund schalke ajax celtic rangers benfica sporting porto boca riverplate flamengo corinthians
palmeiras lakers bulls celtics warriors yankees redsox cubs dodgers giants patriots steelers packers cowgirls raiders
eagles broncos chargers dallas michael michelle jennifer jessica ashley amanda daniel daniela andrew andrea anthony
antonio joshua matthew christopher christian christina christine nicole nicolas nicholas robert roberto william
richard thomas charles charlie joseph david davide jonathan brandon justin jasmin samantha elizabeth stephanie stephen
steven victoria vanessa veronica melissa rebecca rachel sarah sabrina sophie sophia isabella isabelle gabriel gabriela
alexander alexandra alexandre alejandro alejandra carlos fernando francisco guillaume jacques pierre philippe juliette
camille charlotte caroline catherine katherine patricia patrick sebastian benjamin maximilian johannes florian
matthias stefan andreas martin martina marina maria mariana mariposa natalie natasha olivia oliver oscar pablo pedro
sandra samuel santiago simone susanne tamara teresa tiffany tyler vincent valentin valentina zachary america american
canada mexico brasil brazil argentina colombia chile espana spain france francia deutschland germany england london
paris berlin munich lisboa roma rome italia italy moscow russia china beijing shanghai japan tokyo korea india mumbai
delhi australia sydney newyork losangeles chicago boston houston miami orlando toronto texas california florida hawaii
alaska january february march april august september october november december monday tuesday wednesday thursday
friday saturday sunday januar februar marz oktober dezember montag dienstag mittwoch donnerstag freitag samstag
sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miercoles jueves viernes sabado domingo
computer laptop internet network keyboard monitor program programmer developer hacker hacking security secure system
software hardware wireless ethernet router cisco linux ubuntu debian redhat fedora apache tomcat guitar guitarra piano
music musica musique metallica slipknot nirvana greenday linkinpark eminem beatles rolling rockandroll rockstar hiphop
techno dancer dancing singer drummer killer killers ninja samurai warrior soldier sniper pirate legend legends hero
heroes champion winner winners destiny destroy destroyer maverick rebel outlaw gangster thuglife playboy player
players sexy hotstuff fuckyou fuckyouall fuckoff bullshit asshole biteme kissme kisses pussycat badboy badgirl diamond
diamonds golden goldfish silver crystal pearl emerald sapphire ruby platinum money moneymoney cash dollar dollars
million millionaire business company office marketing sales account accounts finance payment bank banking student
students teacher school college university doctor nurse engineer lawyer police fireman pilot captain freedom liberty
victory success peace happy happyday happiness lucky luckycharm smile smiley sunny cool coolguy awesome amazing
perfect special magic magical mystery dreams dreamer dream fantasy paradise ocean beach island mountain forest river
thunder lightning storm hurricane tornado blizzard fire firefire flame inferno black blackcat blackjack white green
purple yellow pink pinky redrum blue blueeyes brown please thankyou hello hellohello hola holahola bonjour hallo ciao
goodbye goodluck goodmorning goodnight something anything everything someone correcthorsebatterystaple
"""

COMMON_WORDS = frozenset(_WORDS.split())
