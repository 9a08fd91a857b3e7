# compiled as it is: a class that users may inherit from
